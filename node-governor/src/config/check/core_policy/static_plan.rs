// SPDX-License-Identifier: Apache-2.0
//! A static plan: of this machine, or of several nodes.

use serde_saphyr::Spanned;
use weir_settings::{Error, Scope, Value};

use super::{Reading, cores};
use crate::config::shares::NodePlan;
use crate::config::written;
use crate::cores::Cores;
use crate::cores::static_plan::{self, PlanNode, Step};

/// What the one node of a plan is called that names none.
const HERE: &str = "here";

impl Reading<'_> {
    pub(super) fn static_plan(&mut self, written: &written::StaticPlan) -> Result<NodePlan, Error> {
        let (value, any) = (&written.node, |text: &str| !text.is_empty());
        let node = self.scope.text(value, "node", HERE, any, "a name")?;
        self.remember("node", self.scope.refuse(value, "node", ""));
        let mut plan = static_plan::Params::default();
        let whole = written.nodes.is_none();
        if let Some(nodes) = &written.nodes {
            if written.node.is_none() {
                let reason = "required: which of the nodes this one is";
                return Err(self.scope.refuse(&None, "node", reason));
            }
            if written.service.is_some() {
                let reason = "is for a plan without nodes; nodes have one each";
                return Err(self.scope.refuse(&written.service, "service", reason));
            }
            self.nodes(nodes, &mut plan)?;
        }
        self.steps(&written.steps, whole.then_some(&node), &mut plan)?;
        if whole {
            let one = self.one_node(written, node.clone(), &plan.steps)?;
            plan.nodes.push(one);
        }
        Ok(NodePlan { node, plan, whole })
    }

    /// Of a plan without nodes: has the cores that are named, for now.
    fn one_node(
        &mut self,
        written: &written::StaticPlan,
        name: String,
        steps: &[Step],
    ) -> Result<PlanNode, Error> {
        let (value, field) = (&written.service, "service");
        let place = self.scope.refuse(value, field, "");
        self.remember(format!("nodes.{name}.service"), place);
        let service = cores(value, field, Cores::NONE, &self.scope)?;
        let add = |all: Cores, step: &Step| all.with(&step.cores);
        let named = steps.iter().fold(service.clone(), add);
        if named.is_empty() {
            let reason = "has neither a service nor steps";
            return Err(self.scope.refuse(&None, "", reason));
        }
        Ok(PlanNode {
            name,
            cores: named,
            service,
        })
    }

    fn nodes(
        &mut self,
        written: &[Spanned<written::PlanNode>],
        plan: &mut static_plan::Params,
    ) -> Result<(), Error> {
        for (index, node) in written.iter().enumerate() {
            let scope = self.scope.section("nodes").item(index);
            let scope = scope.at(node.referenced.line());
            let value = &node.value;
            let name = required(&value.name, "name", "its name", &scope)?;
            if plan.nodes.iter().any(|other| other.name == name) {
                let reason = format!("{name:?} is there already");
                return Err(scope.refuse(&value.name, "name", reason));
            }
            for (field, written) in [("cores", &value.cores), ("service", &value.service)] {
                self.remember(
                    format!("nodes.{name}.{field}"),
                    scope.refuse(written, field, ""),
                );
            }
            plan.nodes.push(PlanNode {
                name,
                cores: cores(&value.cores, "cores", Cores::NONE, &scope)?,
                service: cores(&value.service, "service", Cores::NONE, &scope)?,
            });
        }
        Ok(())
    }

    /// `here` is the node of steps that name none.
    fn steps(
        &mut self,
        written: &[Spanned<written::Step>],
        here: Option<&String>,
        plan: &mut static_plan::Params,
    ) -> Result<(), Error> {
        for (index, step) in written.iter().enumerate() {
            let scope = self.scope.section("steps").item(index);
            let scope = scope.at(step.referenced.line());
            let value = &step.value;
            let job = required(&value.job, "job", "the name of a job", &scope)?;
            if plan.steps.iter().any(|other| other.job == job) {
                let reason = format!("{job:?} has a step already");
                return Err(scope.refuse(&value.job, "job", reason));
            }
            let node = match (&value.node, here) {
                (None, Some(here)) => here.clone(),
                _ => required(&value.node, "node", "one of the nodes", &scope)?,
            };
            self.remember(format!("steps.{job}"), scope.refuse(&value.job, "job", ""));
            scope.section("after").item(0).note("", "text", None, None);
            let after = value.after.first().cloned();
            for (field, written) in [
                ("node", &value.node),
                ("cores", &value.cores),
                ("after", &after),
            ] {
                self.remember(
                    format!("steps.{job}.{field}"),
                    scope.refuse(written, field, ""),
                );
            }
            plan.steps.push(Step {
                job,
                node,
                cores: cores(&value.cores, "cores", Cores::NONE, &scope)?,
                after: value.after.iter().map(|job| job.value.clone()).collect(),
            });
        }
        let steps = written.first().map(|step| step.referenced.line());
        let scope = steps.map_or(self.scope.clone(), |line| self.scope.at(line));
        self.remember("steps", scope.refuse(&None, "steps", ""));
        Ok(())
    }
}

fn required(value: &Value, field: &str, what: &str, scope: &Scope<'_>) -> Result<String, Error> {
    scope.note(field, "text", None, None);
    match value {
        Some(text) if !text.value.is_empty() => Ok(text.value.clone()),
        _ => Err(scope.refuse(value, field, format!("required; {what}"))),
    }
}
