// SPDX-License-Identifier: Apache-2.0
//! A written plan for three nodes, a weir-governor each: memcached on one, six jobs on two, of which one waits for a
//! job of the other node.
//!
//! ```text
//!  calibration ──> load, SLO, sizes of jobs
//!  memcached <── load, steady                  node two:   weir-governor, memcached's core
//!  ferret, dedup                               node four:  weir-governor ──┐ GET /state
//!  freqmine, blackscholes, fft, canneal        node eight: weir-governor <─┘
//!  the governors' timelines ──> when each job began and ended ──> verdicts
//! ```
//! After document 004 (*Cloud Computing Architecture*, semester project report, part 3), whose nodes are three
//! machines with fourteen cores and whose jobs are PARSEC's. Here all nodes are one machine with two cores.

pub mod calibration;
pub mod figures;
pub mod governors;
pub mod jobs;
pub mod plan;
pub mod report;
pub mod rounds;
pub mod table;
pub mod timeline;
pub mod verdict;
pub mod way;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use weir_report::Report;

use self::calibration::Calibration;
use self::plan::Plan;
use self::rounds::{Round, Setting};
use self::way::Way;
use crate::colocation::jobs::Job;
use crate::colocation::programs::Programs;
use crate::variant::{Compared, Variant};
use crate::verdict::Verdict;
use crate::{Experiment, cgroups};

type Args = Compared<Programs, Way>;

/// The experiment after its calibration.
pub struct StaticPlan {
    args: Args,
    folder: PathBuf,
    plan: Plan,
    found: Calibration,
    jobs: Vec<Job>,
    /// What jobs work on; gone with the value.
    _work: TempDir,
}

impl Experiment for StaticPlan {
    const NAME: &'static str = rounds::NAME;
    type Args = Args;
    /// Repeat, seed and way.
    type Turn = (u32, u64, Way);
    type Round = Round;

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        cgroups::sweep(Self::NAME)?;
        let plan = if args.seeded.quick {
            Plan::QUICK
        } else {
            Plan::FULL
        };
        println!("static-plan: calibrating");
        let (programs, seed) = (&args.programs, args.seeded.seed);
        let found = Calibration::measure(programs, &plan, &folder.join("calibration"), seed)?;
        println!(
            "static-plan: memcached on all cores carries {:.0} requests of 100 keys a second and is asked {:.0}; \
             alone its p95 is {} µs then, so the SLO is {} µs",
            found.all_cores,
            found.rate(),
            found.alone_p95_us,
            found.slo_us
        );
        let work = tempfile::Builder::new().prefix("work").tempdir_in(folder)?;
        let jobs = jobs::make(programs, &found.sizes, work.path(), seed)?;
        Ok(Self {
            args,
            folder: folder.to_owned(),
            plan,
            found,
            jobs,
            _work: work,
        })
    }

    fn turns(&self) -> Vec<Self::Turn> {
        let mut random = self.args.seeded.random();
        let mut turns = Vec::new();
        for repeat in 0..self.plan.repeats {
            let seed = random.next_u64();
            let ways = self.args.drawn(&mut random);
            turns.extend(ways.into_iter().map(|way| (repeat, seed, way)));
        }
        turns
    }

    fn play(&mut self, (repeat, seed, way): &Self::Turn) -> Result<Vec<Round>> {
        let setting = Setting {
            programs: &self.args.programs,
            plan: &self.plan,
            found: &self.found,
            jobs: &self.jobs,
        };
        let folder = self.folder.join(format!("{repeat}-{}", way.name()));
        let round = rounds::run(&setting, *way, (*repeat, *seed), &folder)
            .with_context(|| format!("the way {}", way.name()))?;
        Ok(vec![round])
    }

    fn progress(&self, round: &Round) -> Option<String> {
        let figures = figures::of(std::slice::from_ref(round), round.way)?;
        Some(format!(
            "{:<8} all jobs ended after {:>5.1} s; p95 above the SLO in {:>2} of {:>2} intervals",
            round.way.name(),
            round.makespan_s,
            figures.violations.violated,
            figures.violations.intervals
        ))
    }

    fn table(&self, rounds: &[Round]) -> String {
        let ways = table::ways(rounds, self.plan.scale).markdown();
        format!("{ways}\n{}", table::jobs(rounds).markdown())
    }

    fn verdicts(&self, rounds: &[Round]) -> Vec<Verdict> {
        verdict::verdicts(rounds)
    }

    fn report(&self, rounds: &[Round]) -> Option<Report> {
        let command = self.args.seeded.command(Self::NAME);
        Some(report::page(rounds, &self.found, self.plan.scale, &command))
    }
}
