// SPDX-License-Identifier: Apache-2.0
//! `weir-lab`: what the rule-processing host costs and how its orders differ, measured.
//!
//! ```text
//! rules      items/s of the rules against jq and Python on the same items
//! orders     response times under a rising rate, for every order (document 003)
//! linear-road the same of a workflow that branches: Linear Road
//! suspension what it brings that a running joblet makes room (Neptune)
//! emulation  the emulated executor against the real one on the same jobs
//! ```

mod affinity;
mod arrivals;
mod course;
mod emulation;
mod jobs;
mod linear_road;
mod log;
mod orders;
mod real;
mod rules;
mod suspension;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Measures the rule-processing host.
#[derive(Parser)]
#[command(name = "weir-lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Rule evaluation against jq and Python, cold and cached jobs, memory per million items
    Rules(rules::Args),
    /// Response times under a rising rate, for every order and quantum of document 003
    Orders(orders::Args),
    /// A workflow that branches, Linear Road, under every order and quantum of document 003
    LinearRoad(linear_road::Args),
    /// What it brings that a joblet that runs makes room for a more important one
    Suspension(suspension::Args),
    /// The emulated executor against the real one on the same jobs
    Emulation(emulation::Args),
}

fn main() -> ExitCode {
    let done = match Cli::parse().command {
        Command::Rules(args) => rules::run(&args),
        Command::Orders(args) => orders::run(&args),
        Command::LinearRoad(args) => linear_road::run(&args),
        Command::Suspension(args) => suspension::run(&args),
        Command::Emulation(args) => emulation::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
