// SPDX-License-Identifier: Apache-2.0
//! What hot-function events cost a real search engine.
//!
//! ```text
//!  term counts ─> index (cached) ─> one Elasticsearch a way ─┐
//!       └───────> queries (seeded) ──> turns, way by way ────┴─> rounds ─> figures ─> table
//! ```
//! The ways are those of document 000, "Definitions: Types"; queries and loads those of document
//! 002, sections 3.1 and 4. Only one of the engines is asked at a time, in short turns whose order
//! is drawn anew, and every way answers the same queries in a round: what drifts, drifts for all.

pub mod client;
pub mod figures;
pub mod governor;
pub mod index;
pub mod node;
pub mod plan;
pub mod profile;
pub mod queries;
pub mod ring;
pub mod rounds;
pub mod table;
pub mod terms;
pub mod way;

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use clap::ValueEnum;
use tempfile::TempDir;
use weir_stage::processes::Processes;

use self::governor::Governed;
use self::index::Index;
use self::node::{Node, Places, Programs};
use self::plan::Plan;
use self::queries::Load;
use self::ring::Watch;
use self::rounds::{Asked, Round};
use self::terms::Terms;
use self::way::Way;
use crate::driver::GIVEN;
use crate::variant::{Variant, in_turn};
use crate::{Experiment, Seeded};

/// Shards of the index, each of which a query searches by one call of the hot function.
const SHARDS: u64 = 2;
/// What a call leaves in the ring: that it has begun, that it has ended.
const EVENTS: u64 = 2;
/// Stacks of the engine are sampled for so long, and then its calls observed.
const PROFILED: Duration = Duration::from_secs(10);

/// Measures what hot-function events cost Elasticsearch, five ways side by side.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    seeded: Seeded,
    #[command(flatten)]
    programs: Programs,
    /// The governor's program
    #[arg(long, value_name = "FILE", help_heading = GIVEN)]
    governor: PathBuf,
    /// How often each search term occurs
    #[arg(long, value_name = "CSV", help_heading = GIVEN)]
    counts: PathBuf,
    /// Where the index is kept for the next time
    #[arg(long, value_name = "FOLDER", help_heading = GIVEN)]
    cache: PathBuf,
}

/// The experiment once the index is made.
pub struct Search {
    args: Args,
    folder: PathBuf,
    plan: Plan,
    terms: Terms,
    kept: PathBuf,
}

impl Experiment for Search {
    const NAME: &'static str = "search";
    type Args = Args;
    /// A start of all engines, counted from 0.
    type Turn = u32;
    type Round = Round;

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        let plan = if args.seeded.quick {
            Plan::QUICK
        } else {
            Plan::FULL
        };
        let terms = Terms::read(&args.counts)?;
        let index = Index {
            node: &args.programs.node,
            counts: &args.counts,
            documents: plan.documents,
            seed: args.seeded.seed,
        };
        let kept = index.kept(&args.cache, &mut Processes::new(folder.join("logs"))?)?;
        Ok(Self {
            args,
            folder: folder.to_owned(),
            plan,
            terms,
            kept,
        })
    }

    fn turns(&self) -> Vec<u32> {
        (0..self.plan.starts).collect()
    }

    fn play(&mut self, start: &u32) -> Result<Vec<Round>> {
        println!("search: start {} of {}", start + 1, self.plan.starts);
        let logs = self.folder.join("logs").join(start.to_string());
        let mut engines = Engines::start(self, *start, Processes::bound_in(logs)?)?;
        let asked = Asked {
            terms: &self.terms,
            seed: self.args.seeded.seed,
            plan: self.plan,
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let run = rounds::run(&engines.nodes, &asked, *start, |round| {
            println!("search: round {} of {}", round + 1, self.plan.rounds);
        });
        let (rounds, answered) = runtime.block_on(run)?;
        engines.check(&answered)?;
        if start + 1 == self.plan.starts {
            self.profile(&engines)?;
        }
        Ok(rounds)
    }

    fn table(&self, rounds: &[Round]) -> String {
        table::markdown(rounds)
    }
}

impl Search {
    /// What the engine without anything added does, told and kept beside the rounds.
    fn profile(&self, engines: &Engines) -> Result<()> {
        println!("search: finding hot functions of mixed queries");
        let pure = engines.nodes.iter().find(|node| node.way == Way::Pure);
        let pure = pure.context("there is one of each way")?;
        let status = procfs::process::Process::new(pure.process.id())?.status()?;
        println!("search: the engine has {} threads", status.threads);
        let agent = &self.args.programs.agent;
        let report = profile::profile(pure, agent, &self.terms, Load::Mixed, PROFILED)?;
        println!("\n{report}");
        Ok(std::fs::write(
            self.folder.join("profile.txt"),
            report.to_string(),
        )?)
    }
}

/// All engines of one start, with what reads their events.
struct Engines {
    /// First, so that they are ended first.
    _processes: Processes,
    nodes: Vec<Node>,
    watches: Vec<(Way, Watch)>,
    governor: Governed,
    /// Copies of the index.
    _copies: TempDir,
    /// Events, on tmpfs.
    _events: TempDir,
}

impl Engines {
    fn start(search: &Search, start: u32, mut processes: Processes) -> Result<Self> {
        let folder = |parent: &Path| {
            tempfile::Builder::new()
                .prefix("weir-search")
                .tempdir_in(parent)
        };
        let (copies, events) = (folder(&search.folder)?, folder(Path::new("/dev/shm"))?);
        let places = |way: Way| Places {
            folder: copies.path().join(way.name()),
            events: events.path().join(way.name()),
        };
        ring::create(&places(Way::Instrumented).events)?;
        let governor = governor::start(
            &search.args.governor,
            &search.folder.join("governor"),
            &places(Way::Scheduled).events,
        )?;
        let (mut nodes, mut watches) = (Vec::new(), Vec::new());
        // What is started first has the machine for itself.
        for &way in in_turn(start as usize, Way::value_variants()) {
            let places = places(way);
            if way.has_ring() {
                watches.push((way, Watch::over(&places.events)?));
            }
            let programs = &search.args.programs;
            nodes.push(node::start(
                way,
                programs,
                &search.kept,
                &places,
                &mut processes,
            )?);
        }
        Ok(Self {
            _processes: processes,
            nodes,
            watches,
            governor,
            _copies: copies,
            _events: events,
        })
    }

    /// Every call has left its events, and the governor has read them.
    fn check(&mut self, answered: &[(Way, u64)]) -> Result<()> {
        for (way, watch) in &mut self.watches {
            let written = watch.written_and_at_rest()?;
            let queries = answered.iter().find(|(answered, _)| answered == way);
            let wanted = queries.map_or(0, |(_, queries)| queries * SHARDS * EVENTS);
            ensure!(
                written == wanted,
                "{} has left {written} events instead of {wanted}",
                way.name()
            );
        }
        self.governor.must_live()?;
        println!(
            "search: the governor has read {} events, lost {}, and set frequencies {} times",
            self.governor.counted("weir_governor_events_total")?,
            self.governor.counted("weir_governor_events_lost_total")?,
            self.governor.counted("weir_governor_transitions_total")?
        );
        let told = self.governor.told()?;
        ensure!(
            told.iter().all(|khz| khz.parse::<u32>().is_ok()),
            "the governor has told the cores {told:?}, which are no frequencies"
        );
        Ok(())
    }
}
