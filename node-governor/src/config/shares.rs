// SPDX-License-Identifier: Apache-2.0
//! How cores are divided between a service and batch jobs: what the file says, and what becomes of it on the cores
//! that the machine has.

use std::path::PathBuf;

use weir_settings::Error;

use super::{Tail, TailSource, Trust};
use crate::apply::resctrl::Part;
use crate::cores::blocks::{self, Blocks};
use crate::cores::heracles::{self, Heracles};
use crate::cores::hipster_co::{self, HipsterCo};
use crate::cores::latency_slack::{self, LatencySlack};
use crate::cores::parties::services::{Other, Services};
use crate::cores::parties::{self, Parties};
use crate::cores::static_plan::{self, PlanNode, StaticPlan};
use crate::cores::{Bounds, Cores, Limit, Policy, Refused};
use crate::jobs::Job;
use crate::jobs::spec::{Batch, Spec};

/// How cores are divided between a service and batch jobs.
#[derive(Debug)]
pub struct Shares {
    /// Who the service is; none in a static plan without one on this node.
    pub service: Option<Service>,
    /// Those beside it, in the policy's order.
    pub others: Vec<OtherService>,
    /// Checked as far as that can be done without the machine.
    pub division: Division,
    /// Of this node, in the order in which the policy takes those of one queue.
    pub jobs: Vec<Spec>,
    /// What they share.
    pub batch: Batch,
    /// By what they send; none: that is left alone.
    pub network: Option<Network>,
    /// Where the division was written.
    pub(super) places: Places,
}

/// Who the service is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Service {
    /// Everything in a cgroup, by its path below the mount.
    Cgroup(String),
    /// The process whose number is in this file, and all that come from it.
    PidFile(PathBuf),
    /// The process with this number, and all that come from it.
    Pid(i32),
}

/// An interface that the service and the jobs send by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Network {
    /// Its name.
    pub interface: String,
    /// Bits a second that it can send.
    pub link: u64,
}

/// A service beside the first.
#[derive(Clone, Debug, PartialEq)]
pub struct OtherService {
    /// Its name.
    pub name: String,
    /// Who it is.
    pub service: Service,
    /// Where its latency is measured.
    pub tail: Tail,
    /// Of the file.
    pub(super) line: u64,
}

/// The core policy as it was written.
#[derive(Clone, Debug, PartialEq)]
pub enum Division {
    /// See there.
    StaticPlan(NodePlan),
    /// See there.
    Blocks(blocks::Params),
    /// See there.
    LatencySlack(latency_slack::Params),
    /// See there.
    Parties(parties::Params),
    /// See there.
    Heracles(heracles::Params),
    /// See there.
    HipsterCo(hipster_co::Params),
}

/// A static plan, and which of its nodes this one is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodePlan {
    /// Name of this one.
    pub node: String,
    /// All of the plan.
    pub plan: static_plan::Params,
    /// It was written for one node without saying which cores that has: those that the machine has.
    pub whole: bool,
    /// Nodes with jobs that jobs of this one wait for; their jobs, one after the other, are the plan's `elsewhere`.
    pub peers: Vec<Peer>,
    /// Of those that are asked over https.
    pub trust: Trust,
}

/// The governor of another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    /// Name of its node.
    pub node: String,
    /// Its admin page: `http://ip:port` or `https://name:port`.
    pub url: String,
    /// Its jobs that jobs here wait for.
    pub jobs: Vec<String>,
}

impl Shares {
    /// The policy on a machine with these cores.
    ///
    /// # Errors
    /// The machine does not have cores that the file names.
    pub fn policy(&self, machine: &Cores) -> Result<Policy, Error> {
        let jobs: Vec<Job> = self.jobs.iter().map(|spec| spec.job.clone()).collect();
        let policy = self.division.policy(machine, &jobs);
        policy.map_err(|refused| self.places.of(refused))
    }

    /// Why a field of the core policy cannot be as it was written.
    pub(crate) fn refuse(&self, field: &str, reason: String) -> Error {
        self.places.of(Refused {
            field: field.to_owned(),
            reason,
        })
    }

    /// Cores that are never the service's by that policy, or, where it has none, those that it may lose: where jobs
    /// go when nobody governs.
    pub fn jobs_alone(&self, machine: &Cores) -> Cores {
        match &self.division {
            Division::Blocks(blocks) if blocks.large.is_empty() => blocks.small.clone(),
            Division::Blocks(blocks) => blocks.large.clone(),
            Division::LatencySlack(slack) if slack.batch.is_empty() => slack.elastic.clone(),
            Division::LatencySlack(slack) => slack.batch.clone(),
            Division::Parties(parties) if parties.batch.is_empty() => parties.elastic.clone(),
            Division::Parties(parties) => parties.batch.clone(),
            Division::Heracles(heracles) => heracles.elastic.clone(),
            Division::HipsterCo(co) if co.batch.is_empty() => co.elastic.clone(),
            Division::HipsterCo(co) => co.batch.clone(),
            Division::StaticPlan(plan) => {
                let free = |node: &PlanNode| {
                    let cores = if plan.whole { machine } else { &node.cores };
                    cores.without(&node.service)
                };
                plan.here().next().map_or(Cores::NONE, free)
            }
        }
    }
}

impl Division {
    pub(super) fn policy(&self, machine: &Cores, jobs: &[Job]) -> Result<Policy, Refused> {
        Ok(match self {
            Self::Blocks(params) => Policy::Blocks(Blocks::new(params.clone(), machine, jobs)?),
            Self::LatencySlack(params) => {
                Policy::LatencySlack(LatencySlack::new(params.clone(), machine, jobs)?)
            }
            Self::Parties(params) if params.others.is_empty() => {
                Policy::Parties(Parties::new(params.clone(), machine, jobs)?)
            }
            Self::Parties(params) => {
                Policy::Services(Services::new(params.clone(), machine, jobs)?)
            }
            Self::Heracles(params) => {
                Policy::Heracles(Heracles::new(params.clone(), machine, jobs)?)
            }
            Self::HipsterCo(params) => {
                Policy::HipsterCo(HipsterCo::new(params.clone(), machine, jobs)?)
            }
            Self::StaticPlan(plan) => Policy::StaticPlan(plan.policy(machine, jobs)?),
        })
    }

    /// The cores of this node that the file names: with a machine that has no others, everything can be checked
    /// but whether the real one has them.
    pub(super) fn named(&self) -> Cores {
        match self {
            Self::Blocks(params) => params.reserved.with(&params.small).with(&params.large),
            Self::LatencySlack(params) => params.least.with(&params.elastic).with(&params.batch),
            Self::Parties(params) => {
                let own = params.least.with(&params.elastic).with(&params.batch);
                let add = |all: Cores, other: &Other| all.with(&other.least);
                params.others.iter().fold(own, add)
            }
            Self::Heracles(params) => params.least.with(&params.elastic),
            Self::HipsterCo(params) => params.least.with(&params.elastic).with(&params.batch),
            Self::StaticPlan(plan) => {
                let add = |all: Cores, node: &PlanNode| all.with(&node.cores);
                plan.here().fold(Cores::NONE, add)
            }
        }
    }
}

impl Division {
    /// Its name, where the policy goes by latency.
    pub(super) fn by_latency(&self) -> Option<&'static str> {
        match self {
            Self::LatencySlack(_) => Some("latency_slack"),
            Self::Parties(_) => Some("parties"),
            Self::Heracles(_) => Some("heracles"),
            Self::HipsterCo(_) => Some("hipster_co"),
            Self::StaticPlan(_) | Self::Blocks(_) => None,
        }
    }

    /// How the latency is measured, and whether anybody else does that.
    pub(super) fn measures(&mut self, tail: &Tail) {
        let measured = tail.source != TailSource::Calls;
        match self {
            Self::LatencySlack(params) => {
                (params.measured, params.window) = (measured, tail.window);
            }
            Self::Heracles(params) => params.measured = measured,
            Self::Parties(_) | Self::HipsterCo(_) | Self::StaticPlan(_) | Self::Blocks(_) => {}
        }
    }

    /// How fast the service's cores shall be, and of how many watts, where the policy goes by power.
    pub(crate) fn power(&mut self) -> Option<&mut heracles::power::Params> {
        match self {
            Self::Heracles(params) => params.power.as_mut(),
            _ => None,
        }
    }

    /// What it needs of resctrl, each with the field that asks for it.
    pub(crate) fn resctrl(&self) -> Vec<(&'static str, Part)> {
        match self {
            Self::Heracles(params) if params.memory.is_some() => {
                let field = "memory_bandwidth";
                vec![(field, Part::Cache), (field, Part::Counters)]
            }
            Self::Parties(params) => {
                let cache = (params.cache_steps > 0).then_some(("cache_steps", Part::Cache));
                let bandwidth = params.bandwidth_steps > 0;
                let bandwidth = bandwidth.then_some(("bandwidth_steps", Part::Bandwidth));
                cache.into_iter().chain(bandwidth).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Ways of the cache and percent of bandwidth that the machine has for jobs.
    pub(crate) fn offer(&mut self, ways: Option<Bounds>, bandwidth: Option<Bounds>) {
        match self {
            Self::Heracles(heracles::Params {
                memory: Some(memory),
                ..
            }) => memory.ways = ways,
            Self::Parties(params) => (params.ways, params.bandwidth) = (ways, bandwidth),
            _ => {}
        }
    }

    /// Where the policy says what jobs may send, the bits a second of the interface.
    pub(super) fn link(&mut self) -> Option<&mut Option<u64>> {
        match self {
            Self::Heracles(params) => Some(&mut params.link),
            Self::Parties(params) if params.network_steps > 0 => Some(&mut params.link),
            _ => None,
        }
    }

    /// The policy cannot be without that.
    pub(super) fn lacks_link(&self) -> bool {
        matches!(self, Self::Parties(params) if params.network_steps > 0 && params.link.is_none())
    }

    /// Steps between the lowest frequency and the highest that the policy may take.
    pub(super) fn frequency_steps(&self) -> u32 {
        match self {
            Self::LatencySlack(params) => params.frequency_steps,
            Self::Parties(params) => params.frequency_steps,
            Self::HipsterCo(params) => params.frequency_steps,
            Self::Heracles(_) | Self::StaticPlan(_) | Self::Blocks(_) => 0,
        }
    }

    /// What it sets of jobs beside cores.
    pub fn limits(&self) -> Vec<Limit> {
        match self {
            Self::Parties(params) => params.limits(),
            _ => Vec::new(),
        }
    }

    /// Whether it goes by the CPU time of jobs.
    pub fn heeds_jobs_cpu(&self) -> bool {
        matches!(self, Self::HipsterCo(_))
    }

    /// Whether the service has cores on this node.
    pub(super) fn has_service(&self) -> bool {
        match self {
            Self::StaticPlan(plan) => plan.here().any(|node| !node.service.is_empty()),
            _ => true,
        }
    }

    /// Whether a job runs on this node.
    pub(super) fn is_here(&self, job: &str) -> bool {
        match self {
            Self::StaticPlan(plan) => {
                let steps = &plan.plan.steps;
                !steps
                    .iter()
                    .any(|step| step.job == job && step.node != plan.node)
            }
            _ => true,
        }
    }

    /// The governors of other nodes that have to be asked, and whom to believe.
    pub fn peers(&self) -> (&[Peer], Trust) {
        match self {
            Self::StaticPlan(plan) => (&plan.peers, plan.trust.clone()),
            _ => (&[], Trust::default()),
        }
    }

    /// Without what concerns other nodes alone.
    pub(super) fn here(mut self) -> Self {
        if let Self::StaticPlan(plan) = &mut self {
            plan.plan.steps.retain(|step| step.node == plan.node);
            plan.plan.nodes.retain(|node| node.name == plan.node);
        }
        self
    }
}

impl NodePlan {
    fn here(&self) -> impl Iterator<Item = &PlanNode> {
        let nodes = self.plan.nodes.iter();
        nodes.filter(|node| node.name == self.node)
    }

    fn policy(&self, machine: &Cores, jobs: &[Job]) -> Result<StaticPlan, Refused> {
        let mut plan = self.plan.clone();
        for node in plan.nodes.iter_mut().filter(|node| node.name == self.node) {
            if self.whole {
                node.cores = machine.clone();
            }
            let absent = node.cores.without(machine);
            if !absent.is_empty() {
                return Err(Refused {
                    field: format!("nodes.{}.cores", node.name),
                    reason: format!("the machine has cores {machine}, and no {absent}"),
                });
            }
        }
        StaticPlan::new(&plan, &self.node, jobs)
    }
}

/// Where fields of a core policy were written, by what the policy calls them.
#[derive(Debug)]
pub(super) struct Places {
    /// The policy itself.
    pub(super) policy: Error,
    pub(super) fields: Vec<(String, Error)>,
}

impl Places {
    pub(super) fn of(&self, refused: Refused) -> Error {
        let place = self.fields.iter().find(|(name, _)| *name == refused.field);
        let place = match place {
            Some((_, place)) => place.clone(),
            None => Error {
                field: format!("{}.{}", self.policy.field, refused.field),
                ..self.policy.clone()
            },
        };
        Error {
            reason: refused.reason,
            ..place
        }
    }
}
