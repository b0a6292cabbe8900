// SPDX-License-Identifier: Apache-2.0
//! What rules cost: against jq and Python on the same items, in jobs that find something cached, in
//! memory, and with what the optimiser leaves.
//!
//! ```text
//! generated project ─> items ─┬─> throughput: engine, jq, Python (after they agreed: agreement)
//!                             ├─> jobs:       a real host, cold and cached
//!                             ├─> memory:     a child process that loads them
//!                             └─> optimiser:  generated requests, as written and optimised
//!                                   └── rounds, each of all of these ──> Samples ─> one table
//! ```
//! Other work on the machine makes times vary, so each round measures everything once, and a ratio
//! compares two measurements of one round.

mod agreement;
mod cost;
mod engine;
mod items;
mod jobs;
mod memory;
mod optimiser;
mod present;
mod programs;
mod samples;
mod sets;
mod throughput;

use std::path::PathBuf;

use anyhow::{Context, Result};

use items::Items;
use jobs::Jobs;
use memory::Memory;
use optimiser::Optimiser;
use programs::Programs;
use samples::Samples;
use throughput::Throughput;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Items of the project that the rules are applied to
    #[arg(long, default_value_t = 200_000, value_parser = clap::value_parser!(u64).range(1..=20_000_000))]
    items: u64,
    /// Times that everything is measured
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: u32,
    /// Of the generated items and requests
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Items of the projects that jobs are about
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 100_000])]
    job_items: Vec<u64>,
    /// Write the table here, too
    #[arg(long, value_name = "FILE.md")]
    out: Option<PathBuf>,
    /// Write a page with the table and bars here
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Load this object, say what memory that took, and end
    #[arg(long, hide = true)]
    memory_child: Option<PathBuf>,
}

pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(object) = &args.memory_child {
        return memory::child(object);
    }
    let programs = Programs::find()?;
    eprintln!("making {} items", args.items);
    let items = Items::make(args.items, args.seed)?;
    eprintln!("whether all give the same output");
    for set in &sets::ALL {
        agreement::check(set, &items, &programs)?;
    }
    let mut samples = Samples::default();
    let throughput = Throughput::new(&items, &programs)?;
    let jobs = Jobs::make(&args.job_items, args.seed)?;
    let memory = Memory::make(args.items, args.seed)?;
    let optimiser = Optimiser::make(args.items, args.seed)?;
    for round in 0..args.rounds {
        eprintln!("round {} of {}", round + 1, args.rounds);
        throughput.measure(&mut samples)?;
        jobs.measure(&mut samples)?;
        memory.measure(&mut samples)?;
        optimiser.measure(round, &mut samples)?;
    }
    let mut notes = vec![
        format!("{} items, seed {}.", args.items, args.seed),
        throughput.note(),
        jobs::NOTE.to_owned(),
        memory::NOTE.to_owned(),
        optimiser.note(),
    ];
    notes.extend(programs.absent());
    let text = present::markdown(&samples, &notes);
    println!("{text}");
    if let Some(file) = &args.out {
        std::fs::write(file, &text).with_context(|| format!("--out {}", file.display()))?;
    }
    if let Some(file) = &args.report {
        present::page(&samples, &notes).write(file)?;
    }
    Ok(())
}
