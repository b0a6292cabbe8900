// SPDX-License-Identifier: Apache-2.0
//! Core policies and their parameters. Defaults are the policies' own, and what they may be, the policies say.

use std::time::Duration;

use serde_saphyr::Spanned;
use weir_settings::{Error, Scope, Value};

use super::{ms, one, section_line, written};
use crate::config::shares::{Division, NodePlan, Places};
use crate::cores::blocks::{self, Size};
use crate::cores::static_plan::{self, PlanNode, Step};
use crate::cores::{Cores, latency_slack};

/// Longer is no time between two decisions.
const LONGEST: Duration = ms(3_600_000);
/// What the one node of a plan is called that names none.
const HERE: &str = "here";

/// The one that was written.
pub(super) fn division(
    written: &written::CorePolicy,
    scope: &Scope<'_>,
) -> Result<(Division, Places), Error> {
    let sections = [
        ("blocks", section_line(&written.blocks)),
        ("latency_slack", section_line(&written.latency_slack)),
        ("static_plan", section_line(&written.static_plan)),
    ];
    let (name, line) = one(&sections, scope, "names no policy")?;
    let scope = scope.section(name).at(line);
    let mut read = Reading {
        places: Places {
            policy: scope.refuse(&None, "", ""),
            fields: Vec::new(),
        },
        scope,
    };
    let division = if let Some(written) = &written.blocks {
        Division::Blocks(read.blocks(&written.value)?)
    } else if let Some(written) = &written.latency_slack {
        Division::LatencySlack(read.latency_slack(&written.value)?)
    } else if let Some(written) = &written.static_plan {
        Division::StaticPlan(read.static_plan(&written.value)?)
    } else {
        return Err(read.scope.refuse(&None, "", "no such policy"));
    };
    Ok((division, read.places))
}

/// Remembers where fields are written.
struct Reading<'a> {
    scope: Scope<'a>,
    places: Places,
}

impl Reading<'_> {
    /// `name` is what the policy calls it.
    fn remember(&mut self, scope: &Scope<'_>, name: String, value: &Value, field: &str) {
        let place = scope.refuse(value, field, "");
        self.places.fields.push((name, place));
    }

    fn cores(&mut self, value: &Value, field: &str, default: Cores) -> Result<Cores, Error> {
        self.remember(&self.scope.clone(), field.to_owned(), value, field);
        cores(value, field, default, &self.scope)
    }

    fn number(&mut self, value: &Value, field: &str, default: f64) -> Result<f64, Error> {
        self.remember(&self.scope.clone(), field.to_owned(), value, field);
        self.scope.share(value, field, default, 0.0..=1e6)
    }

    fn share(&mut self, value: &Value, field: &str, default: f64) -> Result<f64, Error> {
        self.remember(&self.scope.clone(), field.to_owned(), value, field);
        self.scope.parse(value, field, default, share)
    }

    fn duration(
        &mut self,
        value: &Value,
        field: &str,
        default: Duration,
    ) -> Result<Duration, Error> {
        self.remember(&self.scope.clone(), field.to_owned(), value, field);
        self.scope.duration(value, field, default, ms(0)..=LONGEST)
    }

    fn blocks(&mut self, written: &written::Blocks) -> Result<blocks::Params, Error> {
        let default = blocks::Params::default();
        Ok(blocks::Params {
            reserved: self.cores(&written.reserved, "reserved", default.reserved)?,
            small: self.cores(&written.small, "small", default.small)?,
            large: self.cores(&written.large, "large", default.large)?,
            large_above: self.number(&written.large_above, "large_above", default.large_above)?,
            small_below: self.number(&written.small_below, "small_below", default.small_below)?,
            start: self.scope.choice(
                &written.start,
                "start",
                default.start,
                &[("small", Size::Small), ("large", Size::Large)],
            )?,
            patience: self.duration(&written.patience, "patience", default.patience)?,
        })
    }

    fn latency_slack(
        &mut self,
        written: &written::LatencySlack,
    ) -> Result<latency_slack::Params, Error> {
        let default = latency_slack::Params::default();
        Ok(latency_slack::Params {
            least: self.cores(&written.least, "least", default.least)?,
            elastic: self.cores(&written.elastic, "elastic", default.elastic)?,
            batch: self.cores(&written.batch, "batch", default.batch)?,
            target: self.duration(&written.target, "target", default.target)?,
            tight: self.share(&written.tight, "tight", default.tight)?,
            loose: self.share(&written.loose, "loose", default.loose)?,
            settle: self.duration(&written.settle, "settle", default.settle)?,
            calm: self.duration(&written.calm, "calm", default.calm)?,
            trend: self.number(&written.trend, "trend", default.trend)?,
            frequency_steps: self.steps_between(written, default.frequency_steps)?,
            patience: self.duration(&written.patience, "patience", default.patience)?,
        })
    }

    fn steps_between(
        &mut self,
        written: &written::LatencySlack,
        default: u32,
    ) -> Result<u32, Error> {
        let (value, field) = (&written.frequency_steps, "frequency_steps");
        self.remember(&self.scope.clone(), field.to_owned(), value, field);
        let steps = self.scope.whole(value, field, default.into(), 0..=1000)?;
        Ok(steps as u32)
    }

    fn static_plan(&mut self, written: &written::StaticPlan) -> Result<NodePlan, Error> {
        let name = |value: &Value, field: &str, default: &str, scope: &Scope<'_>| {
            let any = |text: &str| !text.is_empty();
            scope.text(value, field, default, any, "a name")
        };
        let node = name(&written.node, "node", HERE, &self.scope)?;
        self.remember(&self.scope.clone(), "node".into(), &written.node, "node");
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
            self.remember(
                &self.scope.clone(),
                format!("nodes.{node}.service"),
                &written.service,
                "service",
            );
            let service = cores(&written.service, "service", Cores::NONE, &self.scope)?;
            let named = plan
                .steps
                .iter()
                .fold(service.clone(), |all, step| all.with(&step.cores));
            if named.is_empty() {
                let reason = "has neither a service nor steps";
                return Err(self.scope.refuse(&None, "", reason));
            }
            plan.nodes.push(PlanNode {
                name: node.clone(),
                cores: named,
                service,
            });
        }
        Ok(NodePlan { node, plan, whole })
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
                self.remember(&scope, format!("nodes.{name}.{field}"), written, field);
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
            self.remember(&scope, format!("steps.{job}"), &value.job, "job");
            let after = value.after.first().cloned();
            for (field, written) in [
                ("node", &value.node),
                ("cores", &value.cores),
                ("after", &after),
            ] {
                self.remember(&scope, format!("steps.{job}.{field}"), written, field);
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
        self.remember(&scope, "steps".into(), &None, "steps");
        Ok(())
    }
}

/// Numbers and ranges as the kernel writes them; that they are some, the policy says.
fn cores(value: &Value, field: &str, default: Cores, scope: &Scope<'_>) -> Result<Cores, Error> {
    scope.parse(value, field, default, |text| {
        if text == "none" {
            return Ok(Cores::NONE);
        }
        let list = crate::root::core_list(text);
        let list = list.ok_or_else(|| format!("{text:?} is not a list of cores, as in 0-3,8"))?;
        Ok(list.into_iter().collect())
    })
}

/// `0.05` or `5 %`.
fn share(text: &str) -> Result<f64, String> {
    let share = weir_settings::quantity(text, &[("%", 0.01)]).or_else(|| text.parse().ok());
    share
        .filter(|share: &f64| share.is_finite())
        .ok_or_else(|| format!("{text:?} is not a share, as in 0.05 or 5 %"))
}

fn required(value: &Value, field: &str, what: &str, scope: &Scope<'_>) -> Result<String, Error> {
    match value {
        Some(text) if !text.value.is_empty() => Ok(text.value.clone()),
        _ => Err(scope.refuse(value, field, format!("required; {what}"))),
    }
}
