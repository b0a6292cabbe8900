// SPDX-License-Identifier: Apache-2.0
//! A static plan: of this machine, or of several nodes.

use serde_saphyr::Spanned;
use weir_settings::{Error, Scope, Value};

use super::{Reading, cores};
use crate::config::check::remote;
use crate::config::shares::{NodePlan, Peer};
use crate::config::{Trust, written};
use crate::cores::Cores;
use crate::cores::static_plan::{self, PlanNode, Step};
use crate::sense::peers::connector;

/// What the one node of a plan is called that names none.
const HERE: &str = "here";

/// Of the nodes' governors, in their order.
#[derive(Default)]
struct Urls {
    urls: Vec<Option<String>>,
    has_https: bool,
}

impl Reading<'_> {
    pub(super) fn static_plan(&mut self, written: &written::StaticPlan) -> Result<NodePlan, Error> {
        let (value, any) = (&written.node, |text: &str| !text.is_empty());
        let node = self.scope.text(value, "node", HERE, any, "a name")?;
        self.remember("node", self.scope.refuse(value, "node", ""));
        let mut plan = static_plan::Params::default();
        let whole = written.nodes.is_none();
        let mut urls = Urls::default();
        if let Some(nodes) = &written.nodes {
            if written.node.is_none() {
                let reason = "required: which of the nodes this one is";
                return Err(self.scope.refuse(&None, "node", reason));
            }
            if written.service.is_some() {
                let reason = "is for a plan without nodes; nodes have one each";
                return Err(self.scope.refuse(&written.service, "service", reason));
            }
            urls = self.nodes(nodes, written, &mut plan)?;
        }
        let trust = self.trust(written, &urls)?;
        self.steps(&written.steps, whole.then_some(&node), &mut plan)?;
        if whole {
            let one = self.one_node(written, node.clone(), &plan.steps)?;
            plan.nodes.push(one);
        }
        let peers = self.peers(&written.steps, &node, &plan, urls)?;
        plan.elsewhere = peers.iter().flat_map(|peer| peer.jobs.clone()).collect();
        Ok(NodePlan {
            node,
            plan,
            whole,
            peers,
            trust,
        })
    }

    fn trust(&self, written: &written::StaticPlan, urls: &Urls) -> Result<Trust, Error> {
        let files = remote::Files {
            authority: &written.authority,
            certificate: &written.certificate,
            key: &written.key,
        };
        let trust = files.read(urls.has_https, "url", &self.scope)?;
        files.hold(&trust, urls.has_https, &self.scope, connector)?;
        Ok(trust)
    }

    /// The nodes with jobs that jobs of `here` wait for. Whoever waits for a job of a node without a URL is refused on
    /// every node.
    fn peers(
        &self,
        written: &[Spanned<written::Step>],
        here: &str,
        plan: &static_plan::Params,
        urls: Urls,
    ) -> Result<Vec<Peer>, Error> {
        let mut peers: Vec<Peer> = Vec::new();
        for (url, node) in urls.urls.into_iter().zip(&plan.nodes) {
            let is_there = |job: &str| {
                plan.steps
                    .iter()
                    .any(|s| s.job == job && s.node == node.name)
            };
            let mut jobs: Vec<String> = Vec::new();
            for (index, step) in plan.steps.iter().enumerate() {
                if step.node == node.name {
                    continue;
                }
                for job in step.after.iter().filter(|job| is_there(job)) {
                    if url.is_none() {
                        let scope = self.scope.section("steps").item(index);
                        let scope = scope.at(written[index].referenced.line());
                        let reason = format!(
                            "{job}: runs on node {:?}, which has no url; its governor's admin page, as in https://{}:9414",
                            node.name, node.name
                        );
                        return Err(scope.refuse(
                            &written[index].value.after.first().cloned(),
                            "after",
                            reason,
                        ));
                    }
                    if step.node == here && !jobs.contains(job) {
                        jobs.push(job.clone());
                    }
                }
            }
            if let Some(url) = url.filter(|_| !jobs.is_empty()) {
                peers.push(Peer {
                    node: node.name.clone(),
                    url,
                    jobs,
                });
            }
        }
        Ok(peers)
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
        nodes: &[Spanned<written::PlanNode>],
        written: &written::StaticPlan,
        plan: &mut static_plan::Params,
    ) -> Result<Urls, Error> {
        let plaintext = self.scope.boolean(&written.plaintext, "plaintext", false)?;
        let mut urls = Urls::default();
        for (index, node) in nodes.iter().enumerate() {
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
            scope.note("url", "URL", None, None);
            urls.urls.push(match &value.url {
                None => None,
                Some(_) => {
                    let url = (&value.url, "url");
                    let (url, is_https) = remote::url(url, "", plaintext, &scope)?;
                    urls.has_https |= is_https;
                    Some(url)
                }
            });
        }
        Ok(urls)
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
