// SPDX-License-Identifier: Apache-2.0
//! Under a steady load hosts, keys, tables, VMs and callers come and go; who stays is weighed all the time, and
//! may not grow.
//!
//! ```text
//!  load ──> callers (Envoy, filter) ──> hosts (EMULATED)      churn ─> hosts, policies, VMs, callers
//!                  └── tables, reports ── weir-control          └──> samples ─> trend ─> verdicts, report
//! ```

mod churn;
mod load;
mod outcome;
mod places;
mod plan;
mod report;
mod run;
mod samples;
mod stage;
pub mod trend;
mod verdict;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use weir_report::Report;

pub use self::outcome::Outcome;
pub use self::plan::Plan;
pub use self::run::run;
use crate::Experiment;
use crate::programs::Programs;
use crate::verdict::Verdict;

/// Under a steady load hosts, keys, tables, VMs and callers come and go, and nobody may grow.
#[derive(clap::Args)]
pub struct Args {
    /// How long; the first half warms up, and less than 10 minutes are not judged
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    #[command(flatten)]
    programs: Programs,
}

/// The experiment: one run of so many minutes.
pub struct Soak {
    args: Args,
    folder: PathBuf,
}

impl Experiment for Soak {
    const NAME: &'static str = "soak";
    const TABLE: &'static str = "verdicts.txt";
    const TABLE_HAS_VERDICTS: bool = true;
    type Args = Args;
    type Turn = Plan;
    type Round = Outcome;

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        let folder = folder.to_owned();
        Ok(Self { args, folder })
    }

    fn turns(&self) -> Vec<Plan> {
        vec![Plan::of(Duration::from_secs(60 * self.args.minutes))]
    }

    fn play(&mut self, plan: &Plan) -> Result<Vec<Outcome>> {
        Ok(vec![run(plan, &self.args.programs, &self.folder)?])
    }

    fn table(&self, outcomes: &[Outcome]) -> String {
        outcomes
            .iter()
            .map(|outcome| format!("{outcome}\n"))
            .collect()
    }

    fn verdicts(&self, outcomes: &[Outcome]) -> Vec<Verdict> {
        let verdicts = outcomes.iter().flat_map(|outcome| &outcome.verdicts);
        let verdict = |verdict: &verdict::Verdict| Verdict {
            claim: format!("{}: {}", verdict.what, verdict.seen),
            holds: verdict.holds,
            asserted: true,
        };
        verdicts.map(verdict).collect()
    }

    fn report(&self, outcomes: &[Outcome]) -> Option<Report> {
        outcomes.first().map(report::of)
    }
}
