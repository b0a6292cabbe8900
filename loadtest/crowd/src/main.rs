// SPDX-License-Identifier: Apache-2.0
//! `weir-crowd`: what a weir-control costs that tells a whole fleet, and how soon everybody is back.
//! `cargo xtask fleet` builds what it needs and calls it.
//!
//! ```text
//!  this process                                               its child
//!  EMULATED hosts ──/metrics, /cache──> weir-control ──tables──> EMULATED sidecars
//!       └── plan, figures                (real)      <──reports──┘
//! ```
//! The sidecars speak by the filter's own code ([`weir_filter::stream`]), each on a connection of its own.

mod connection;
mod costs;
mod crowd;
mod hosts;
mod plan;
mod record;
mod result;
mod run;
mod sidecar;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use weir_stage::{interrupt, open_files};

use crate::plan::Plan;

/// A real weir-control before many EMULATED sidecars and hosts.
#[derive(Parser)]
#[command(name = "weir-crowd", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Measures a weir-control
    Run(Run),
    /// Plays the sidecars (called by `run`)
    Sidecars(Sidecars),
}

#[derive(Args)]
struct Run {
    #[command(flatten)]
    plan: Plan,
    /// weir-control
    #[arg(long, value_name = "FILE")]
    control: PathBuf,
    /// For logs, configurations and `fleet.json`
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
}

#[derive(Args)]
struct Sidecars {
    /// Where weir-control listens
    #[arg(long)]
    server: SocketAddr,
    /// How many
    #[arg(long)]
    sidecars: usize,
    /// A host's address a line
    #[arg(long, value_name = "FILE")]
    hosts: PathBuf,
    /// Requests that each of a sidecar's workers has sent between two reports
    #[arg(long)]
    requests: usize,
    /// `{"pages":"ADDRESS"}` is written to it
    #[arg(long, value_name = "FILE")]
    ports_file: PathBuf,
}

/// Connections of all sidecars or hosts, and room for the rest.
const OPEN_FILES: u64 = 1000;

fn main() -> ExitCode {
    let result = match Cli::parse().command {
        Command::Run(run) => measure(&run),
        Command::Sidecars(sidecars) => play(&sidecars),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(run: &Run) -> Result<()> {
    interrupt::catch()?;
    open_files::allow(OPEN_FILES + (2 * run.plan.hosts + run.plan.sidecars) as u64)?;
    let result = run::run(&run.plan, &run.control, &run.folder)?;
    print!("{result}");
    Ok(())
}

fn play(sidecars: &Sidecars) -> Result<()> {
    open_files::allow(OPEN_FILES + sidecars.sidecars as u64)?;
    let hosts = std::fs::read_to_string(&sidecars.hosts)?;
    let hosts: Vec<String> = hosts.lines().map(str::to_owned).collect();
    tokio::runtime::Runtime::new()?.block_on(crowd::serve(
        sidecars.server,
        sidecars.sidecars,
        &hosts,
        sidecars.requests,
        &sidecars.ports_file,
    ))
}
