// SPDX-License-Identifier: Apache-2.0
//! `weir-replay`: sends workloads and makes them.

mod cli;

use anyhow::Context;
use clap::Parser;

fn main() -> anyhow::Result<()> {
    match cli::Args::parse().command {
        cli::Command::Run(run) => run.run(),
        cli::Command::Workload(source) => source.run().context("no workload was made"),
    }
}
