// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask experiments`: every policy on every workload, SIMULATED, in tables and one report.
//!
//! ```text
//! workloads × policies × settings × seeds ─> cells ─> weir-sim cell ─> .weir/experiments/cells/*.json
//!                                              │   as many at a time as the machine has cores
//!   those whose file exists are not run again ─┘                         │
//!                          EXPERIMENTS.md, report.html <─ outcomes <─────┘
//! ```

mod cell;
mod document001;
mod grid;
mod markdown;
mod node;
mod outcome;
mod page;
mod policies;
mod progress;
mod run;
mod store;
mod tables;
mod workloads;

use std::fs;

use anyhow::{Context, Result, ensure};

use crate::experiments::grid::Grid;
use crate::experiments::outcome::Outcomes;
use crate::experiments::store::Store;
use crate::workspace::Workspace;

/// Where `--update` writes the tables.
const TABLES: &str = "loadtest/simulator/EXPERIMENTS.md";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// One seed, fewer policies and settings: a taste of a few minutes
    #[arg(long)]
    quick: bool,
    /// Only this part: the fleet, or one node under its governor
    #[arg(long, value_enum)]
    only: Option<Part>,
    /// Only workloads whose name contains this; repeatable
    #[arg(long, value_name = "NAME")]
    workload: Vec<String>,
    /// Seeds, from 1
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=100))]
    seeds: u64,
    /// Simulations at a time [default: as many as the machine has cores]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=256))]
    jobs: Option<u64>,
    /// Also write the tables to loadtest/simulator (EXPERIMENTS.md and NODE.md): the whole grid, what is published
    #[arg(long, conflicts_with_all = ["quick", "workload"])]
    update: bool,
}

/// What is simulated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum Part {
    Fleet,
    Node,
}

impl Args {
    fn command(&self) -> String {
        let mut command = "cargo xtask experiments".to_owned();
        if self.quick {
            command += " --quick";
        }
        if self.only == Some(Part::Fleet) {
            command += " --only fleet";
        }
        for name in &self.workload {
            command += &format!(" --workload {name}");
        }
        if self.seeds != 5 && !self.quick {
            command += &format!(" --seeds {}", self.seeds);
        }
        command
    }

    fn jobs(&self) -> usize {
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        self.jobs.map_or_else(cores, |jobs| jobs as usize)
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let seeds = if args.quick { 1 } else { args.seeds };
    if args.only != Some(Part::Fleet) && args.workload.is_empty() {
        node::run(workspace, seeds, args.update)?;
    }
    if args.only == Some(Part::Node) {
        return Ok(());
    }
    let grid = Grid::new(args.quick, seeds, &args.workload);
    ensure!(
        !grid.cells.is_empty(),
        "no workload has such a name: {}",
        workloads::names()
    );
    println!("experiments: building weir-sim, weir-replay");
    let [simulator, replay] = workspace.build_release(["weir-sim", "weir-replay"])?;
    let folder = workspace.cache().join("experiments");
    let store = Store::open(&folder, simulator, replay, workspace.root.clone())?;
    run::all(&store, &grid.cells, args.jobs())?;
    let outcomes = Outcomes::read(&store, &grid.cells)?;
    let document001 = document001::text(&store, args.quick, seeds)?;
    let report = folder.join("report.html");
    page::page(&grid, &outcomes, &document001, &args.command()).write(&report)?;
    println!("experiments: the report is {}", workspace.shown(&report));
    let text = markdown::text(&grid, &outcomes, &document001, &args.command());
    let file = folder.join("EXPERIMENTS.md");
    fs::write(&file, &text).with_context(|| format!("writing {}", file.display()))?;
    println!("experiments: the tables are {}", workspace.shown(&file));
    if args.update {
        let file = workspace.root.join(TABLES);
        fs::write(&file, &text).with_context(|| format!("writing {}", file.display()))?;
        println!("experiments: {TABLES} is up to date");
    }
    Ok(())
}
