// SPDX-License-Identifier: Apache-2.0
//! `weir-search`: measures the ways side by side. `cargo xtask search` builds what it needs and calls it.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use weir_search::index::Index;
use weir_search::node::{self, Places, Programs};
use weir_search::plan::Plan;
use weir_search::ring::Watch;
use weir_search::rounds::{self, Asked, Round};
use weir_search::terms::Terms;
use weir_search::way::Way;
use weir_search::{governor, ring, table};
use weir_stage::interrupt;
use weir_stage::processes::Processes;

/// Shards of the index, each of which a query searches by one call of the hot function.
const SHARDS: u64 = 2;
/// What a call leaves in the ring: that it has begun, that it has ended.
const EVENTS: u64 = 2;

/// Measures what hot-function events cost Elasticsearch, four ways side by side.
#[derive(Parser)]
#[command(name = "weir-search", version)]
struct Cli {
    /// The jar of the engine
    #[arg(long, value_name = "JAR")]
    node: PathBuf,
    /// The jar of the agent that writes events
    #[arg(long, value_name = "JAR")]
    agent: PathBuf,
    /// The governor's program
    #[arg(long, value_name = "FILE")]
    governor: PathBuf,
    /// How often each search term occurs
    #[arg(long, value_name = "CSV")]
    counts: PathBuf,
    /// Where the index is kept for the next time
    #[arg(long, value_name = "FOLDER")]
    cache: PathBuf,
    /// For logs, copies of the index, `rounds.jsonl` and `table.md`
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
    /// Fewer and shorter rounds over a smaller index
    #[arg(long)]
    quick: bool,
    /// Of documents, queries and the order of rounds
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> ExitCode {
    match run(&Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(cli: &Cli) -> Result<()> {
    interrupt::catch()?;
    let plan = if cli.quick { Plan::QUICK } else { Plan::FULL };
    let terms = Terms::read(&cli.counts)?;
    let mut indexing = Processes::new(cli.folder.join("logs"))?;
    let index = Index {
        node: &cli.node,
        counts: &cli.counts,
        documents: plan.documents,
        seed: cli.seed,
    };
    let kept = index.kept(&cli.cache, &mut indexing)?;
    let asked = Asked {
        terms: &terms,
        seed: cli.seed,
        plan,
    };
    let mut rounds = Vec::new();
    for start in 0..plan.starts {
        let events = Events::new()?;
        rounds.extend(measure(cli, &asked, &kept, &events, start)?);
        // After each, so that what was measured is kept if the next one fails.
        write(&cli.folder, &rounds)?;
    }
    println!("\n{}", table::markdown(&rounds));
    Ok(())
}

/// The folder on tmpfs that the events of one start are in; gone with the value.
struct Events(PathBuf);

impl Events {
    fn new() -> Result<Self> {
        let folder = Path::new("/dev/shm").join(format!("weir-search-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
        Ok(Self(folder))
    }

    fn of(&self, way: Way) -> PathBuf {
        self.0.join(way.name())
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn measure(
    cli: &Cli,
    asked: &Asked<'_>,
    kept: &Path,
    events: &Events,
    start: u32,
) -> Result<Vec<Round>> {
    let plan = asked.plan;
    println!("search: start {} of {}", start + 1, plan.starts);
    let programs = Programs {
        node: cli.node.clone(),
        agent: cli.agent.clone(),
    };
    let mut processes = Processes::new(cli.folder.join("logs").join(start.to_string()))?;
    let mut nodes = Vec::new();
    let mut watches = Vec::new();
    let mut governors = Vec::new();
    for way in Way::ALL {
        let places = Places {
            folder: cli.folder.join("nodes").join(way.name()),
            events: events.of(way),
        };
        match way {
            Way::Instrumented => ring::create(&places.events)?,
            Way::Scheduled => {
                let folder = events.0.join("governor");
                let started =
                    governor::start(&cli.governor, &folder, &places.events, &mut processes)?;
                governors.push(started);
            }
            _ => {}
        }
        if way.has_ring() {
            watches.push((way, Watch::over(&places.events)?));
        }
        nodes.push(node::start(way, &programs, kept, &places, &mut processes)?);
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let (rounds, answered) = runtime.block_on(rounds::run(&nodes, asked, start, |round| {
        println!("search: round {} of {}", round + 1, plan.rounds);
    }))?;
    for (way, watch) in &mut watches {
        let written = watch.written_and_at_rest()?;
        let queries = answered.iter().find(|(answered, _)| answered == way);
        let wanted = queries.map_or(0, |(_, queries)| queries * SHARDS * EVENTS);
        ensure!(
            written == wanted,
            "{} has left {written} events instead of {wanted}",
            way.name()
        );
    }
    for governor in governors {
        println!(
            "search: the governor has read {} events, lost {}, and set frequencies {} times",
            governor.counted("weir_governor_events_total")?,
            governor.counted("weir_governor_events_lost_total")?,
            governor.counted("weir_governor_transitions_total")?
        );
        let told = governor.told()?;
        ensure!(
            told.iter().all(|khz| khz.parse::<u32>().is_ok()),
            "the governor has told the cores {told:?}, which are no frequencies"
        );
    }
    drop(processes);
    let _ = fs::remove_dir_all(cli.folder.join("nodes"));
    Ok(rounds)
}

fn write(folder: &Path, rounds: &[Round]) -> Result<()> {
    let mut lines = File::create(folder.join("rounds.jsonl"))?;
    for round in rounds {
        writeln!(lines, "{}", serde_json::to_string(round)?)?;
    }
    fs::write(folder.join("table.md"), table::markdown(rounds))?;
    Ok(())
}
