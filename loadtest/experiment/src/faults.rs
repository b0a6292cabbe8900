// SPDX-License-Identifier: Apache-2.0
//! What happens when parts of a mesh die, lie or hang: faults under steady load.
//!
//! ```text
//! Fault ── plan ──> Mesh            load ──open-loop──> callers ──> hosts (note what they execute)
//!   └───── run ───> Stage ─harm─>     │                                │
//!                                  Records ──> Figures ──> Verdict <── Executions, in-flight counters
//! ```
//!
//! A fault is one small file in `faults/all/`: what is harmed, how long, and what is expected then. The rest is the
//! same for all: a calm phase, the harm and its end under the same load, a calm phase, the checks.

mod all;
pub mod executions;
pub mod expectation;
pub mod fault;
pub mod figures;
mod front;
pub mod in_flight;
pub mod load;
pub mod outcome;
pub mod record;
pub mod run;
pub mod signs;
pub mod stage;
pub mod table;
pub mod verdict;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use weir_mesh::Programs;

pub use self::all::FAULTS;
use self::fault::{Fault, Length};
use self::run::{Played, Suite};
use crate::Experiment;
use crate::verdict::Verdict;

/// From the root of the repository, where `cargo xtask faults` runs it.
const RESULTS: &str = "loadtest/experiment/src/faults/RESULTS.md";

/// Plays faults and tells what came of them; programs are named by the environment, as in the tests.
#[derive(clap::Args)]
pub struct Args {
    /// Only these faults; --list names all
    names: Vec<String>,
    /// Name all faults and what is expected of each
    #[arg(long)]
    list: bool,
    /// The short form, as in the tests
    #[arg(long)]
    short: bool,
    /// Also write RESULTS.md, below the folder that this is run in. Only of all faults, at full length
    #[arg(long, conflicts_with_all = ["names", "list", "short"])]
    update: bool,
}

/// The experiment: a suite of faults.
pub struct Faults {
    args: Args,
    suite: Option<Suite<'static>>,
}

impl Experiment for Faults {
    const NAME: &'static str = "faults";
    const TABLE_HAS_VERDICTS: bool = true;
    type Args = Args;
    type Turn = (&'static Fault, Length);
    type Round = Played;

    fn listing(args: &Args) -> Result<Option<String>> {
        let wanted = wanted(&args.names)?;
        let line = |fault: &&Fault| format!("{:<28} {}\n", fault.name, fault.expectation.sentence);
        Ok(args.list.then(|| wanted.iter().map(line).collect()))
    }

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        let say = |line: &str| println!("faults: {line}");
        let suite = Suite::new(Programs::from_environment()?, folder.to_owned(), say);
        let suite = Some(suite);
        Ok(Self { args, suite })
    }

    fn turns(&self) -> Vec<(&'static Fault, Length)> {
        let mut turns = Vec::new();
        for fault in wanted(&self.args.names).unwrap_or_default() {
            match (self.args.short, fault.short) {
                (false, _) => turns.push((fault, fault.full)),
                (true, Some(short)) => turns.push((fault, short)),
                (true, None) => println!("faults: {} has no short form", fault.name),
            }
        }
        turns
    }

    fn play(&mut self, (fault, length): &(&'static Fault, Length)) -> Result<Vec<Played>> {
        let suite = self.suite.as_mut().context("the meshes have ended")?;
        Ok(vec![suite.play(fault, *length)?])
    }

    fn table(&self, all: &[Played]) -> String {
        table::markdown(all)
    }

    fn verdicts(&self, all: &[Played]) -> Vec<Verdict> {
        let verdict = |played: &Played| Verdict {
            claim: played.fault.to_owned(),
            holds: played.verdict.is_good(),
            asserted: true,
        };
        all.iter().map(verdict).collect()
    }

    fn finish(&mut self, all: &[Played]) -> Result<()> {
        self.suite = None;
        if self.args.update {
            fs::write(RESULTS, table::page(all)).with_context(|| format!("writing {RESULTS}"))?;
        }
        Ok(())
    }
}

/// Those that are named, in the order of the list; all if none is.
fn wanted(names: &[String]) -> Result<Vec<&'static Fault>> {
    for name in names {
        if !FAULTS.iter().any(|fault| fault.name == name) {
            let all: Vec<_> = FAULTS.iter().map(|fault| fault.name).collect();
            bail!("there is no fault `{name}`; there are {}", all.join(", "));
        }
    }
    let named = |fault: &&Fault| names.is_empty() || names.iter().any(|name| name == fault.name);
    Ok(FAULTS.iter().filter(named).collect())
}
