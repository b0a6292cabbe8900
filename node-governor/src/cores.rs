// SPDX-License-Identifier: Apache-2.0
//! Which cores the service has and which each batch job has. Pure.
//!
//! ```text
//!                        ┌ static_plan    jobs in an order that was written down
//! Seen ──> Policy::plan ─┼ blocks         the service has one block or two, jobs have the others  ──> CorePlan
//!                        ├ latency_slack  as many cores for the service as its latency needs
//!                        ├ parties        one resource at a time, cores, cache, frequency, memory, disk, network, by its latency
//!                        ├ heracles       jobs have one core more at a time while the service has slack; what memory, network and power leave
//!                        └ hipster_co     cores and frequency at once, those that have paid at this load
//! ```
//! A new one is a file, a variant and an arm. Whatever is seen, the service keeps at least one core, no core has
//! two owners (but in a static plan that says so), and a job that was started is run or paused until it ends.

pub mod blocks;
mod core_set;
pub mod heracles;
pub mod hipster_co;
pub mod latency_slack;
pub mod parties;
mod places;
mod sets;
mod silence;
pub mod static_plan;

use std::time::Duration;

pub use core_set::Cores;

use crate::jobs::{Job, State};
use crate::sensed::{Nanos, Resources};

/// What was seen of the service, its host and the jobs in one tick.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// When.
    pub now: Nanos,
    /// Cores that the service used on average since the last tick. Unknown where its source is silent; what is
    /// not a number, or is below nothing, counts as unknown.
    pub cpu: Option<f64>,
    /// The service's 95th percentile of late, where something measures it.
    pub p95: Option<Duration>,
    /// When that was measured.
    pub p95_at: Nanos,
    /// That it was taken from; 0 where it is not known. With a latency that somebody else works out it is always 1.
    pub requests: u64,
    /// Who measures it says that there were no requests of late: as good as a short latency.
    pub quiet: bool,
    /// The 95th percentile of late of each service beside this one, in their order; nothing where it had no requests.
    pub others: Vec<Option<Duration>>,
    /// The mesh refuses requests to this host or is about to ([`crate::pressure`]).
    pub pressed: bool,
    /// One for each job, in their order. A missing one waits.
    pub jobs: Vec<State>,
    /// Cores that the jobs used on average since the last tick, all together. Unknown as [`Seen::cpu`].
    pub jobs_cpu: Option<f64>,
    /// Jobs of other nodes that jobs here wait for, in the plan's order: whether each has ended, none while that is
    /// not known. A missing one is not known.
    pub elsewhere: Vec<Option<bool>>,
    /// What the service and the jobs share beside cores.
    pub resources: Resources,
}

impl Seen {
    /// The service's latency; nothing to do is none to wait for.
    fn latency(&self) -> Option<Duration> {
        self.p95.or(self.quiet.then_some(Duration::ZERO))
    }

    fn cpu(&self) -> Option<f64> {
        self.cpu.filter(|cpu| cpu.is_finite() && *cpu >= 0.0)
    }

    /// Whether anything tells of the service. Where somebody measures its latency, use alone does not.
    fn tells(&self, measured: bool) -> bool {
        self.latency().is_some() || (self.cpu().is_some() && !measured)
    }

    fn elsewhere(&self, index: usize) -> Option<bool> {
        self.elsewhere.get(index).copied().flatten()
    }

    fn job(&self, index: usize) -> State {
        self.jobs.get(index).copied().unwrap_or_default()
    }
}

/// Who has which cores until the next tick. Cores that it does not name idle.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CorePlan {
    /// The service's; where it lives on another node, none.
    pub service: Cores,
    /// Those of each service beside it, in their order.
    pub others: Vec<Cores>,
    /// The service's cores shall be at least so fast, whatever else chooses their frequency: 0 is their lowest, 1
    /// their highest. None: it is no matter of this plan.
    pub speed: Option<f64>,
    /// One for each job, in their order.
    pub jobs: Vec<JobPlan>,
    /// What all jobs together may have beside cores.
    pub ceilings: Ceilings,
    /// Why the service has these cores.
    pub reason: Reason,
}

/// What a job shall do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobPlan {
    /// Start it or let it go on, freeze it, or leave it alone.
    pub act: Act,
    /// Where; some where it runs, and none otherwise.
    pub cores: Cores,
    /// To start it with.
    pub threads: u32,
    /// What it may have beside cores.
    pub limits: Limits,
    /// Its cores shall be at their highest frequency, whatever else chooses that.
    pub fast: bool,
}

/// What all jobs together may have of what they share with the service.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Ceilings {
    /// Bits a second that they may send by the interface of the configuration. None: it is no matter of this plan.
    pub egress: Option<u64>,
    /// Their cores shall be at most so fast, as in [`CorePlan::speed`]. None: it is no matter of this plan.
    pub speed: Option<f64>,
    /// Ways of the L3 cache that they may fill. None: it is no matter of this plan.
    pub ways: Option<u32>,
    /// Percent of a core's bandwidth of memory that each of their cores may use. None: it is no matter of this plan.
    pub bandwidth: Option<u32>,
}

/// Of what a machine divides, the least that jobs can have and the most that they may.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// The machine gives no less.
    pub least: u32,
    /// What is above stays with the service.
    pub most: u32,
}

impl Bounds {
    /// What jobs have while the service has so many of these steps, of which there are some.
    fn left(self, given: u32, steps: u32) -> u32 {
        let taken = u64::from(self.most - self.least) * u64::from(given) / u64::from(steps);
        // No more than the whole.
        self.most - taken as u32
    }
}

/// What a job may have of the node's memory and disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// In bytes; above it the kernel takes memory back from the job. None: it is no matter of this plan.
    pub memory: Option<u64>,
    /// Its weight among those who wait for the disk; 100 is everybody's. None: it is no matter of this plan.
    pub disk: Option<u32>,
}

/// A resource of jobs beside cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// [`Limits::memory`]
    Memory,
    /// [`Limits::disk`]
    Disk,
}

/// See [`JobPlan::act`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Act {
    /// Has not started, and shall not yet.
    #[default]
    Wait,
    /// Start it, or let it go on.
    Run,
    /// Freeze it: it has started, and there is no core for it.
    Pause,
    /// It has ended.
    Done,
}

/// Why the service has the cores that it has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Reason {
    /// Nothing speaks against what it had.
    #[default]
    Same,
    /// It was written down.
    Written,
    /// Its CPU use went over the limit.
    Busy,
    /// Its CPU use went under the limit.
    Calm,
    /// Its latency was too near the target.
    Tight,
    /// Its latency was far from the target.
    Loose,
    /// The mesh has begun to refuse its requests, or they wait.
    Refused,
    /// What was tried did not help, or did harm.
    Reverted,
    /// Memory was near what it can do, and jobs lost cores for it.
    Memory,
    /// Sources are silent: it keeps what it has for now.
    Held,
    /// Sources have been silent for too long: it has all it may have.
    Safe,
    /// No job needs them.
    NoJobs,
}

/// A policy cannot be as it was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct Refused {
    /// Which field.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Refused {
    fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

/// How cores are divided.
#[derive(Debug)]
#[allow(clippy::large_enum_variant, reason = "a node has one")]
pub enum Policy {
    /// As it was written down.
    StaticPlan(static_plan::StaticPlan),
    /// Document 004's state machine.
    Blocks(blocks::Blocks),
    /// By the service's latency.
    LatencySlack(latency_slack::LatencySlack),
    /// One resource at a time by the service's latency.
    Parties(parties::Parties),
    /// The same for several services, cores alone.
    Services(parties::services::Services),
    /// Jobs have cores by the service's slack and load.
    Heracles(heracles::Heracles),
    /// Cores and frequency by what has paid at this load.
    HipsterCo(hipster_co::HipsterCo),
}

impl Policy {
    /// What the service's 95th percentile shall stay below, where the policy goes by that.
    pub fn target(&self) -> Option<Duration> {
        match self {
            Self::LatencySlack(policy) => Some(policy.target()),
            Self::Parties(policy) => Some(policy.target()),
            Self::Services(policy) => Some(policy.target()),
            Self::Heracles(policy) => Some(policy.target()),
            Self::HipsterCo(policy) => Some(policy.target()),
            Self::StaticPlan(_) | Self::Blocks(_) => None,
        }
    }

    /// The next plan. `seen.now` does not go back.
    pub fn plan(&mut self, seen: &Seen) -> CorePlan {
        match self {
            Self::StaticPlan(policy) => policy.plan(seen),
            Self::Blocks(policy) => policy.plan(seen),
            Self::LatencySlack(policy) => policy.plan(seen),
            Self::Parties(policy) => policy.plan(seen),
            Self::Services(policy) => policy.plan(seen),
            Self::Heracles(policy) => policy.plan(seen),
            Self::HipsterCo(policy) => policy.plan(seen),
        }
    }
}

/// `cores` are some, and the machine has them.
fn check_cores(field: &str, cores: &Cores, machine: &Cores) -> Result<(), Refused> {
    if cores.is_empty() {
        return Err(Refused::new(field, "has no cores"));
    }
    let absent = cores.without(machine);
    if !absent.is_empty() {
        let reason = format!("the machine has cores {machine}, and no {absent}");
        return Err(Refused::new(field, reason));
    }
    Ok(())
}

/// A limit is a number above 0 and no more than `most`.
fn check_range(field: &str, value: f64, most: f64) -> Result<(), Refused> {
    if value > 0.0 && value <= most {
        return Ok(());
    }
    let reason = format!("{value} is not above 0 and at most {most}");
    Err(Refused::new(field, reason))
}

/// Jobs have threads, and names of their own.
fn check_jobs(jobs: &[Job]) -> Result<(), Refused> {
    for (index, job) in jobs.iter().enumerate() {
        let field = format!("jobs.{}", job.name);
        if job.threads == 0 {
            return Err(Refused::new(field, "has no threads"));
        }
        if jobs[..index].iter().any(|other| other.name == job.name) {
            return Err(Refused::new(field, "is there twice"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod laws;
