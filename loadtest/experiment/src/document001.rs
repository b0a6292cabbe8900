// SPDX-License-Identifier: Apache-2.0
//! The six experiments of document 001, and Weir's default, on real Envoys, Consul and Prometheus.
//!
//! ```text
//!  replay ──> Envoys (callers) ──> hosts ──> Prometheus ─┐
//!                 ▲                  └─────> Consul ─────┤ every five of the document's seconds
//!                 └──────── weir-control <───────────────┘
//!
//!  records ──> outcomes, in the document's time ──> tables 4 to 7, figures 4 to 15, beside the published ones
//!  the same requests ──> weir-sim, SIMULATED ─────> the same tables
//! ```

mod outcome;
mod page;
mod plan;
mod setting;
mod simulated;
mod stage;
#[cfg(test)]
mod tests;
mod verdict;
mod workload;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use weir_replay::backoff::Backoff;
use weir_report::Report;
use weir_sim::document001::Experiment as Run;
use weir_sim::document001::report::Outcome;
use weir_stage::processes::Processes;

use self::plan::Plan;
use self::workload::Workload;
use crate::progress::Progress;
use crate::replay::Replay;
use crate::verdict::Verdict;
use crate::{Experiment, demo};

/// Flags of the experiment.
#[derive(clap::Args)]
pub struct Args {
    /// Hosts that do the work: rules on generated feeds, and fewer of them
    #[arg(long)]
    real: bool,
    /// Four minutes of the document instead of twenty: rougher figures
    #[arg(long)]
    quick: bool,
    /// Of a host's cache, where hosts do the work; 128 MB without, which is less than all feeds take
    #[arg(long, value_name = "BYTES", requires = "real")]
    cache_bytes: Option<u64>,
    /// Only these runs, as in breaker-dynamic or weir-estimate; repeatable
    #[arg(long, value_name = "NAME")]
    only: Vec<Run>,
    #[command(flatten)]
    programs: Programs,
}

/// Programs and files that it needs.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = crate::driver::GIVEN)]
#[group(skip)]
pub struct Programs {
    #[command(flatten)]
    demo: demo::Programs,
    /// Consul
    #[arg(long, value_name = "FILE")]
    consul: PathBuf,
    /// Prometheus
    #[arg(long, value_name = "FILE")]
    prometheus: PathBuf,
}

/// The experiment: a run a turn.
pub struct Document001 {
    programs: Programs,
    plan: Plan,
    workload: Workload,
    folder: PathBuf,
    runs: Vec<Run>,
    command: String,
    header: String,
    progress: Progress,
}

/// A run and what came of it.
#[derive(Serialize)]
pub struct Told {
    name: &'static str,
    /// Share of the machine's cores' time while requests were sent, in 0..=1.
    busy: Option<f64>,
    /// How far the replayer was behind, in milliseconds of this machine: 99th percentile.
    lag: f64,
    #[serde(skip)]
    measured: Outcome,
    /// None where hosts do the work: there is nothing to simulate.
    #[serde(skip)]
    simulated: Option<Outcome>,
}

impl Experiment for Document001 {
    const NAME: &'static str = "document-001";
    type Args = Args;
    type Turn = Run;
    type Round = Told;

    fn listing(args: &Args) -> Result<Option<String>> {
        ensure!(
            !args.only.contains(&Run::Production),
            "--only production: its three servers and its connection time-out are simulated alone: \
             weir-sim document-001 --only production"
        );
        Ok(None)
    }

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        let mut plan = Plan::new(args.real, args.quick);
        plan.cache_bytes = args.cache_bytes.unwrap_or(plan.cache_bytes);
        if let Some(calm) = plan.calm() {
            let busy = Self::look(args.programs.clone(), calm, &folder.join("calm"));
            plan = plan.paced(busy.context("looking what a request takes")?);
        }
        let asked = |run: &Run| args.only.is_empty() || args.only.contains(run);
        let runs = Run::ALL.into_iter().filter(|run| *run != Run::Production);
        let (command, runs) = (args.command(), runs.filter(asked).collect());
        let experiment = Self::new(args.programs, plan, runs, command, folder)?;
        println!("\n{}\n", experiment.header);
        Ok(experiment)
    }

    fn turns(&self) -> Vec<Run> {
        self.runs.clone()
    }

    fn play(&mut self, run: &Run) -> Result<Vec<Told>> {
        self.progress.next_way(run.name());
        Ok(vec![self.try_run(*run).context(run.name())?])
    }

    fn table(&self, rounds: &[Told]) -> String {
        page::markdown(&self.header, rounds)
    }

    fn verdicts(&self, rounds: &[Told]) -> Vec<Verdict> {
        verdict::claims(rounds)
    }

    fn report(&self, rounds: &[Told]) -> Option<Report> {
        Some(page::report(&self.command, &self.header, rounds))
    }
}

impl Args {
    /// The command that these are of.
    fn command(&self) -> String {
        let mut command = "cargo xtask document-001".to_owned();
        for (given, flag) in [(self.real, " --real"), (self.quick, " --quick")] {
            command += if given { flag } else { "" };
        }
        if let Some(bytes) = self.cache_bytes {
            command += &format!(" --cache-bytes {bytes}");
        }
        for run in &self.only {
            command += &format!(" --only {}", run.slug());
        }
        command
    }
}

impl Document001 {
    /// Makes the requests.
    fn new(
        programs: Programs,
        plan: Plan,
        runs: Vec<Run>,
        command: String,
        folder: &Path,
    ) -> Result<Self> {
        let workload = Workload::prepare(&plan, &programs.demo, folder)?;
        let header = setting::header(&plan, &workload);
        let progress = Progress::new(runs.len(), workload.lasts + demo::plan::AROUND);
        Ok(Self {
            programs,
            plan,
            workload,
            folder: folder.to_owned(),
            runs,
            command,
            header,
            progress,
        })
    }

    /// How busy *Baseline, baseline* keeps the cores.
    fn look(programs: Programs, plan: Plan, folder: &Path) -> Result<f64> {
        println!("document-001: looking what a request takes");
        fs::create_dir_all(folder)?;
        let first = Run::BaselineBaseline;
        let mut experiment = Self::new(programs, plan, vec![first], String::new(), folder)?;
        let told = experiment.play(&first)?;
        let busy = told.first().and_then(|told| told.busy);
        busy.context("the kernel does not tell how busy cores are")
    }

    fn try_run(&mut self, run: Run) -> Result<Told> {
        let started = Instant::now();
        let folder = self.folder.join(run.slug());
        let mut processes = Processes::bound_in(folder.clone())?;
        self.progress.say("starting", started.elapsed());
        let stage = (&self.plan, &self.workload);
        let (callers, sights) = stage::start(stage, &self.programs, run, &mut processes, &folder)?;
        let targets: Vec<_> = callers.iter().map(|caller| caller.listener).collect();
        let hosts = sights.hosts.clone();
        let plan = &self.plan;
        let backoff = Backoff {
            base: plan.compressed(plan::BACKOFF.base),
            cap: plan.compressed(plan::BACKOFF.cap),
        };
        let replay = Replay {
            program: &self.programs.demo.replay,
            workload: &self.workload.file,
            bodies: self.workload.feeds.as_deref(),
            targets: &targets,
            deadline: self.plan.deadline,
            attempts: plan::ATTEMPTS,
            backoff: Some(&backoff),
        };
        let progress = &mut self.progress;
        let tell = |what: &str| progress.say(what, started.elapsed());
        let lasts = self.workload.lasts;
        let watched = replay.send_watched(&mut processes, &folder, sights, lasts, tell)?;
        progress.end_way(&format!("done in {} s", started.elapsed().as_secs()));
        let records = &watched.replayed.records;
        let tally = outcome::tally(&self.plan, &hosts, records, &watched.samples);
        let simulated = simulated::tally(&self.plan, &self.workload, run)?;
        let of = |tally| Outcome {
            experiment: run,
            tallies: vec![tally],
        };
        Ok(Told {
            name: run.name(),
            busy: watched.busy,
            lag: watched.replayed.lag,
            measured: of(tally),
            simulated: simulated.map(of),
        })
    }
}
