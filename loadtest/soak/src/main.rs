// SPDX-License-Identifier: Apache-2.0
//! `weir-soak`: whether anything grows while everything comes and goes. `cargo xtask soak` builds what it needs and
//! calls it.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Parser;
use weir_soak::{Plan, Programs};
use weir_stage::interrupt;

/// Under a steady load hosts, keys, tables, VMs and callers come and go, and nobody may grow.
#[derive(Parser)]
#[command(name = "weir-soak", version)]
struct Cli {
    #[command(flatten)]
    programs: Programs,
    /// How long; the first half warms up and is not judged
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
    /// For logs, samples and the report
    #[arg(long, value_name = "FOLDER")]
    folder: PathBuf,
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
    let plan = Plan::of(Duration::from_secs(60 * cli.minutes));
    let outcome = weir_soak::run(&plan, &cli.programs, &cli.folder)?;
    println!("{outcome}");
    ensure!(outcome.holds(), "something does not hold");
    Ok(())
}
