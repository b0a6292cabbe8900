// SPDX-License-Identifier: Apache-2.0
//! memcached on all cores of a machine with batch jobs beside it: who has the cores, six ways in one run.
//!
//! ```text
//!  calibration ──> rates, SLO, sizes of jobs ─┐
//!                                             v
//!  memcached in a cgroup <── load (light, then heavy, stepping)      ┐
//!  stress-ng, x264, zstd <── the lab, or weir-governor in a way      ├─ a round: each way once, order drawn
//!  what each has, sampled from the kernel's files                    ┘
//! ```
//! After document 004 (*Cloud Computing Architecture*, semester project report, part 4), whose machine has four
//! cores and whose batch jobs are PARSEC's.

pub mod batch;
pub mod calibration;
pub mod figures;
pub mod governor;
pub mod jobs;
pub mod load;
pub mod material;
pub mod plan;
pub mod programs;
pub mod quiet;
pub mod report;
pub mod rounds;
pub mod samples;
pub mod table;
pub mod verdict;
pub mod way;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use tempfile::TempDir;
use weir_report::Report;

use self::calibration::Calibration;
use self::jobs::Job;
use self::plan::Plan;
use self::programs::Programs;
use self::rounds::{Round, Setting, Which};
use self::way::Way;
use crate::variant::{Compared, Variant};
use crate::verdict::Verdict;
use crate::{Experiment, cgroups, driver};

type Args = Compared<Programs, Way>;

/// The experiment after its calibration.
pub struct Colocation {
    args: Args,
    folder: PathBuf,
    plan: Plan,
    found: Calibration,
    jobs: Vec<Job>,
    /// What jobs work on: hundreds of megabytes that the seed makes again, gone with the value.
    _work: TempDir,
}

impl Experiment for Colocation {
    const NAME: &'static str = "colocation";
    type Args = Args;
    type Turn = (Which, Way);
    type Round = Round;

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        cgroups::sweep(Self::NAME)?;
        let plan = if args.seeded.quick {
            Plan::QUICK
        } else {
            Plan::FULL
        };
        println!("colocation: calibrating");
        let (programs, seed) = (&args.programs, args.seeded.seed);
        let found = Calibration::measure(programs, &plan, &folder.join("calibration"), seed)?;
        tell(&found);
        let work = tempfile::Builder::new().prefix("work").tempdir_in(folder)?;
        let jobs = jobs::make(programs, found.sizes, work.path(), seed)?;
        Ok(Self {
            args,
            folder: folder.to_owned(),
            plan,
            found,
            jobs,
            _work: work,
        })
    }

    fn turns(&self) -> Vec<(Which, Way)> {
        let mut random = self.args.seeded.random();
        let mut turns = Vec::new();
        for repeat in 0..self.plan.repeats {
            for stepping in self.plan.steppings {
                let which = Which {
                    repeat,
                    stepping: *stepping,
                    seed: random.next_u64(),
                };
                let ways = self.args.drawn(&mut random);
                turns.extend(ways.into_iter().map(|way| (which, way)));
            }
        }
        turns
    }

    fn play(&mut self, (which, way): &(Which, Way)) -> Result<Vec<Round>> {
        let setting = Setting {
            programs: &self.args.programs,
            found: &self.found,
            jobs: &self.jobs,
            patience: self.plan.patience,
        };
        let folder = rounds::folder(&self.folder, *which, *way);
        let round = rounds::run(&setting, *way, *which, &folder)
            .with_context(|| format!("the way {}", way.name()))?;
        driver::write_lines(&folder.join("samples.jsonl"), &round.samples)?;
        Ok(vec![round])
    }

    fn progress(&self, round: &Round) -> Option<String> {
        Some(format!(
            "steps of {} s, {:<16} violations {:>2} of {:>2} light, {:>2} of {:>2} heavy; batch done after {:.1} s",
            round.interval_s,
            round.way.name(),
            round.light.violated,
            round.light.intervals,
            round.heavy.violated,
            round.heavy.intervals,
            round.batch_s
        ))
    }

    fn table(&self, rounds: &[Round]) -> String {
        table::table(rounds).markdown()
    }

    fn verdicts(&self, rounds: &[Round]) -> Vec<Verdict> {
        verdict::verdicts(rounds)
    }

    fn report(&self, rounds: &[Round]) -> Option<Report> {
        let names: Vec<&str> = self.jobs.iter().map(|job| job.name).collect();
        let command = self.args.seeded.command(Self::NAME);
        Some(report::page(rounds, &self.found, &names, &command))
    }
}

fn tell(found: &Calibration) {
    let Calibration {
        all_cores,
        alone_p95_us,
        slo_us,
        sizes,
    } = found;
    println!(
        "colocation: memcached on all cores carries {all_cores:.0} requests of 100 keys a second; \
         light is up to {:.0}, heavy up to {:.0}",
        found.light().1,
        found.heavy().1
    );
    println!(
        "colocation: alone at the heavy load its p95 is {alone_p95_us} µs, so the SLO is {slo_us} µs; \
         jobs: stress-ng {} operations, x264 {} frames, zstd {} bytes",
        sizes.operations, sizes.frames, sizes.bytes
    );
}
