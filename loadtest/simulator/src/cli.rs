// SPDX-License-Identifier: Apache-2.0
//! The command line.

mod cell;
mod document001;
mod print;
mod progress;
mod run;
mod scenario;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// SIMULATED fleets: the filter's decision, weir-control's state and the executor in modelled time.
#[derive(Parser)]
#[command(name = "weir-sim", version)]
pub(crate) struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Play a workload file of weir-replay and print the summary as JSON
    Run(Box<run::Args>),
    /// Play a workload and print few figures as JSON: one cell of a grid of experiments
    Cell(Box<cell::Args>),
    /// Write a workload file for weir-replay or `weir-sim run`
    #[command(subcommand)]
    Workload(Workload),
    /// Production and the six experiments of document 001 beside their published figures
    Experiments(document001::Experiments),
    /// Search for the parameters that bring out document 001's production row
    Fit(document001::Fit),
}

#[derive(Subcommand)]
enum Workload {
    /// Requests as van den Berg (Scheduling data feed processing jobs, Utrecht University, 2023)
    /// describes them, with every joblet of a request in one run
    #[command(name = "document-001")]
    Document001(document001::Workload),
}

impl Cli {
    pub(crate) fn run(&self) -> Result<()> {
        match &self.command {
            Command::Run(args) => run::run(args),
            Command::Cell(args) => args.run(),
            Command::Workload(Workload::Document001(args)) => args.write(),
            Command::Experiments(args) => args.run(),
            Command::Fit(args) => args.run(),
        }
    }
}
