// SPDX-License-Identifier: Apache-2.0
//! memcached alone by load, for each number of its threads and of the cores that it may run on: how few carry how
//! much within the SLO.
//!
//! ```text
//!  as much as can be asked, all threads on all cores ──> requests a second it carries ──> rates
//!  memcached of T threads on C cores <── each rate for some seconds ──> p95, answers, CPU use
//! ```
//! The scan of document 004 (*Cloud Computing Architecture*, semester project report, part 4.1), whose client has
//! machines of its own.

mod pinned;
pub mod table;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use weir_memcached_load::server::Program;
use weir_report::Report;
use weir_stage::usage::Process;

use crate::colocation::load::{Asked, Client};
use crate::colocation::rounds::wait;
use crate::driver::GIVEN;
use crate::verdict::Verdict;
use crate::{Experiment, Seeded};

/// Document 004's, of an interval's p95 (part 4).
pub const SLO_US: u64 = 1_500;
/// Requests that may wait.
const IN_FLIGHT: u32 = 4_096;

/// Measures memcached by load, for each number of its threads and cores.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    seeded: Seeded,
    /// The service
    #[arg(long, value_name = "FILE", help_heading = GIVEN)]
    memcached: PathBuf,
    /// The load client, weir-memcached-load
    #[arg(long, value_name = "FILE", help_heading = GIVEN)]
    load: PathBuf,
}

/// What memcached has.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct Allocation {
    /// Its threads that answer.
    pub threads: u32,
    /// Cores, from 0 on, that they may run on.
    pub cores: usize,
}

/// Those of document 004, part 4.1.
pub const ALLOCATIONS: [Allocation; 4] = {
    const fn of(threads: u32, cores: usize) -> Allocation {
        Allocation { threads, cores }
    }
    [of(1, 1), of(2, 1), of(1, 2), of(2, 2)]
};

/// Sizes of a scan.
#[derive(Clone, Copy, Debug)]
struct Plan {
    /// Rates, as equal parts of what is carried; document 004 has 24.
    steps: u32,
    /// Each for so long; document 004 has 5 s.
    step: Duration,
    /// How often all of it.
    repeats: u32,
}

const FULL: Plan = Plan {
    steps: 24,
    step: Duration::from_secs(2),
    repeats: 3,
};
const QUICK: Plan = Plan {
    steps: 12,
    step: Duration::from_secs(1),
    repeats: 1,
};

/// A rate for some seconds: a line of `rounds.jsonl`.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    /// Counted from 0.
    pub repeat: u32,
    /// What memcached had.
    #[serde(flatten)]
    pub allocation: Allocation,
    /// Of what two threads carry on all cores, in percent.
    pub percent: f64,
    /// Requests of 100 keys a second that were asked for,
    pub asked_qps: f64,
    /// and answered.
    pub answered_qps: f64,
    /// Of the requests; none where 5 of 100 had no answer.
    pub p95_us: Option<u64>,
    /// How late the client was with 95 of 100.
    pub client_late_us: Option<u64>,
    /// Cores that memcached used.
    pub used_cores: f64,
}

impl Step {
    /// Within the SLO.
    #[must_use]
    pub fn is_carried(&self) -> bool {
        self.p95_us.is_some_and(|p95| p95 <= SLO_US)
    }
}

/// The experiment after its calibration.
pub struct Scan {
    args: Args,
    folder: PathBuf,
    plan: Plan,
    carried_qps: f64,
}

impl Experiment for Scan {
    const NAME: &'static str = "scan";
    type Args = Args;
    type Turn = (u32, Allocation);
    type Round = Step;

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        let cores = pinned::allowed()?;
        ensure!(
            cores.len() >= 2,
            "two cores are wanted; this process may run on {cores:?}"
        );
        let plan = if args.seeded.quick { QUICK } else { FULL };
        let server = Program::at(args.memcached.clone()).start(2, folder)?;
        let client = Client::new(&args.load, server.address(), folder)?;
        let carried_qps = client.carried(3 * plan.step, args.seeded.seed)?;
        println!(
            "scan: two threads on all cores carry {carried_qps:.0} requests of 100 keys a second, with the client on them"
        );
        Ok(Self {
            args,
            folder: folder.to_owned(),
            plan,
            carried_qps,
        })
    }

    fn turns(&self) -> Vec<(u32, Allocation)> {
        let repeats = 0..self.plan.repeats;
        let of = |repeat| ALLOCATIONS.map(|allocation| (repeat, allocation));
        repeats.flat_map(of).collect()
    }

    fn play(&mut self, (repeat, allocation): &(u32, Allocation)) -> Result<Vec<Step>> {
        let steps = 1..=self.plan.steps;
        let rates = steps.map(|step| f64::from(step) / f64::from(self.plan.steps));
        let all: Vec<Asked> = rates
            .map(|share| self.asked(share * self.carried_qps))
            .collect();
        let steps = self.run(*repeat, *allocation, &all)?;
        let best = steps.iter().rfind(|step| step.is_carried());
        println!(
            "scan: {} threads on {} cores: {:.0} requests a second within the SLO",
            allocation.threads,
            allocation.cores,
            best.map_or(0.0, |step| step.asked_qps)
        );
        Ok(steps)
    }

    fn table(&self, steps: &[Step]) -> String {
        let by_rate = table::by_rate(steps).markdown();
        format!("{by_rate}\n{}", table::most(steps).markdown())
    }

    fn verdicts(&self, steps: &[Step]) -> Vec<Verdict> {
        table::verdicts(steps)
    }

    fn report(&self, steps: &[Step]) -> Option<Report> {
        let command = self.args.seeded.command(Self::NAME);
        Some(table::page(steps, self.carried_qps, &command))
    }
}

impl Scan {
    fn asked(&self, rate: f64) -> Asked {
        Asked {
            name: "scan",
            rates: (rate, rate),
            interval: self.plan.step,
            length: self.plan.step,
            seed: self.args.seeded.seed,
            slo_us: SLO_US,
            in_flight: IN_FLIGHT,
            metrics: None,
        }
    }

    /// A memcached anew, asked one after the other. The client has the cores that memcached has not, or all.
    fn run(&self, repeat: u32, allocation: Allocation, all: &[Asked]) -> Result<Vec<Step>> {
        let cores = pinned::allowed()?;
        let (own, other) = cores.split_at(allocation.cores.min(cores.len()));
        let of_client = if other.is_empty() { own } else { other };
        let program = Program::at(self.args.memcached.clone());
        let start = || program.start(allocation.threads, &self.folder);
        let server = pinned::on(own, start)??;
        let process = Process::new(server.pid())?;
        let client = Client::new(&self.args.load, server.address(), &self.folder)?;
        let mut steps = Vec::new();
        for asked in all {
            let before = process.cpu()?;
            let mut running = pinned::on(of_client, || client.start(asked))??;
            wait(&mut running)?;
            let used = process.cpu()?.saturating_sub(before);
            let told = client.told(asked)?;
            let figures = told.intervals.first().context("one interval")?;
            steps.push(Step {
                repeat,
                allocation,
                percent: 100.0 * asked.rates.0 / self.carried_qps,
                asked_qps: asked.rates.0,
                answered_qps: figures.achieved_qps,
                p95_us: figures.latency.p95_us,
                client_late_us: figures.client_late_p95_us,
                used_cores: used.as_secs_f64() / asked.length.as_secs_f64(),
            });
        }
        Ok(steps)
    }
}
