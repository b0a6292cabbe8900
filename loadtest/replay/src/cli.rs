// SPDX-License-Identifier: Apache-2.0
//! The command line.

mod run;
mod workload;

use clap::{Parser, Subcommand};

/// Sends a recorded workload open-loop and measures every answer.
#[derive(Debug, Parser)]
#[command(name = "weir-replay", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Replay a workload file.
    Run(run::Run),
    /// Make a workload file from a recorded trace or a folder of feeds.
    #[command(subcommand)]
    Workload(workload::Source),
}
