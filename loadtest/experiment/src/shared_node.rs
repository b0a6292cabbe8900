// SPDX-License-Identifier: Apache-2.0
//! A host whose service shares its node with a batch job, behind an Envoy that refuses what it cannot carry.
//!
//! ```text
//!  replay ──> Envoy + filter ──> weir-worker     a cgroup: core 0, and core 1 when it may
//!                 ▲    levels        ▲ cores
//!             weir-control <──> weir-governor    only in the governed ways
//!                                    ▼ cores, pauses
//!                               batch job        a cgroup: core 1
//! ```
//! One round is each way once, in an order that is drawn.

pub mod batch;
pub mod calibration;
mod consul;
pub mod figures;
pub mod governor;
pub mod mesh;
pub mod plan;
pub mod programs;
pub mod reaction;
pub mod report;
pub mod rounds;
pub mod service;
pub mod table;
pub mod verdict;
pub mod way;
pub mod work;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use weir_report::Report;

use self::calibration::Calibration;
use self::plan::Plan;
use self::programs::Programs;
use self::rounds::{Round, Setting};
use self::way::Way;
use self::work::Work;
use crate::load::Fleet as Surroundings;
use crate::variant::{Compared, Variant};
use crate::verdict::Verdict;
use crate::{Experiment, cgroups, driver};

/// Flags.
#[derive(clap::Args)]
pub struct Args {
    /// Surroundings of the host: an Envoy before it, or a Consul mesh
    #[arg(long, value_enum, default_value = "static")]
    against: Surroundings,
    #[command(flatten)]
    compared: Compared<Programs, Way>,
}

/// The experiment after its calibration.
pub struct SharedNode {
    args: Compared<Programs, Way>,
    folder: PathBuf,
    plan: Plan,
    found: Calibration,
    work: Work,
}

/// A way of a round: the round's number and the seed of its requests.
pub struct Turn {
    repeat: u32,
    seed: u64,
    way: Way,
}

impl Experiment for SharedNode {
    const NAME: &'static str = "shared-node";
    type Args = Args;
    type Turn = Turn;
    type Round = Round;

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        cgroups::sweep(Self::NAME)?;
        let (mut args, against) = (args.compared, args.against);
        args.programs.burn = std::env::current_exe()?;
        if against == Surroundings::Static {
            args.programs.consul = None;
        } else {
            ensure!(
                args.programs.consul.is_some(),
                "--against mesh needs --consul"
            );
        }
        let plan = if args.seeded.quick {
            Plan::QUICK
        } else {
            Plan::FULL
        };
        println!("shared-node: calibrating");
        let found = Calibration::measure(&args.programs, &folder.join("calibration"))?;
        tell(&plan, found);
        let work = Work::make(&folder.join("work"), found.rules)?;
        Ok(Self {
            args,
            folder: folder.to_owned(),
            plan,
            found,
            work,
        })
    }

    fn turns(&self) -> Vec<Turn> {
        let mut random = self.args.seeded.random();
        let mut turns = Vec::new();
        for repeat in 0..self.plan.rounds {
            let seed = random.next_u64();
            let ways = self.args.drawn(&mut random);
            turns.extend(ways.into_iter().map(|way| Turn { repeat, seed, way }));
        }
        turns
    }

    fn play(&mut self, turn: &Turn) -> Result<Vec<Round>> {
        let Turn { repeat, seed, way } = *turn;
        let setting = Setting {
            programs: &self.args.programs,
            plan: &self.plan,
            found: self.found,
            work: &self.work,
            consul: self.args.programs.consul.as_deref(),
        };
        let folder = self.folder.join(format!("{repeat}-{}", way.name()));
        let round = rounds::run(&setting, way, (repeat, seed), &folder)
            .with_context(|| format!("the way {}", way.name()))?;
        driver::write_lines(&folder.join("samples.jsonl"), &round.samples)?;
        Ok(vec![round])
    }

    fn progress(&self, round: &Round) -> Option<String> {
        let count = round.requests.all();
        Some(format!(
            "{:<13} shed {:>4} of {}, failed {}; p95 wait {:.0} ms; batch {:.1} s of CPU in {:.0} s; {} moves; \
             second core after {:.0} ms, both {:.0} % of the overload; capacity from {}",
            round.way.name(),
            count.shed,
            count.sent,
            count.failed,
            round.requests.wait_p95(),
            round.batch_cpu_s,
            round.seconds,
            round.moves,
            round.reaction.after_ms(),
            100.0 * round.reaction.share(),
            round.capacity_from,
        ))
    }

    fn table(&self, rounds: &[Round]) -> String {
        table::table(rounds).markdown()
    }

    fn verdicts(&self, rounds: &[Round]) -> Vec<Verdict> {
        verdict::verdicts(rounds)
    }

    fn report(&self, rounds: &[Round]) -> Option<Report> {
        let mut command = self.args.seeded.command(Self::NAME);
        if self.args.programs.consul.is_some() {
            command += " --against mesh";
        }
        Some(report::page(rounds, &self.plan, self.found, &command))
    }
}

fn tell(plan: &Plan, found: Calibration) {
    let (over, calm) = (plan.load * found.one_core, plan.calm_load * found.one_core);
    println!(
        "shared-node: on core 0 alone the host does {:.1} jobs a second, of {:.1} ms each ({} rules); load: \
         {over:.1}/s for {} s, {calm:.1}/s for {} s, and again {over:.1}/s for {} s",
        found.one_core,
        1e3 / found.one_core,
        found.rules,
        plan.over.as_secs(),
        plan.calm.as_secs(),
        plan.over.as_secs(),
    );
}
