// SPDX-License-Identifier: Apache-2.0
//! The command line.

mod cell;
mod document001;
mod document004;
mod jobs;
mod node;
mod overload;
mod print;
mod progress;
mod replay_receipts;
mod run;
mod scenario;
mod what_if;
mod workload_file;

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
    /// Say what another policy, fewer hosts or more load would have done with a workload, and how sure that is
    WhatIf(what_if::Args),
    /// Write a workload file for weir-replay or `weir-sim run`
    #[command(subcommand)]
    Workload(Workload),
    /// Tables 4 to 7 and figures 4 to 15 of document 001, SIMULATED, beside what it published
    #[command(name = "document-001")]
    Document001(document001::Document001),
    /// Memcached and six batch jobs: parts 3 and 4 of document 004, SIMULATED, beside what it measured
    #[command(name = "document-004")]
    Document004(document004::Document004),
    /// Overload policies side by side, below saturation and beyond it
    Overload(overload::Args),
    /// One SIMULATED machine: cores, frequencies, and the energy of a MODEL
    #[command(subcommand)]
    Node(node::Node),
    /// Decide again what receipts of weir-control tell, and compare; nothing of it is simulated
    ReplayReceipts(replay_receipts::Args),
    /// Search for the parameters that bring out document 001's production row
    Fit(document001::Fit),
}

#[derive(Subcommand)]
enum Workload {
    /// Requests as van den Berg (Scheduling data feed processing jobs, Utrecht University, 2023)
    /// describes them, with every joblet of a request in one run
    #[command(name = "document-001")]
    Document001(document001::Workload),
    /// More requests than a fleet can do, for a while
    Overload(overload::Workload),
}

impl Cli {
    pub(crate) fn run(&self) -> Result<()> {
        match &self.command {
            Command::Run(args) => run::run(args),
            Command::Cell(args) => args.run(),
            Command::WhatIf(args) => args.run(),
            Command::Workload(Workload::Document001(args)) => args.write(),
            Command::Document001(args) => args.run(),
            Command::Document004(args) => args.run(),
            Command::Workload(Workload::Overload(args)) => args.write(),
            Command::Overload(args) => args.run(),
            Command::Node(node) => node.run(),
            Command::ReplayReceipts(args) => args.run(),
            Command::Fit(args) => args.run(),
        }
    }
}
