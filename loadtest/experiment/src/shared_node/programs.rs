// SPDX-License-Identifier: Apache-2.0
//! The programs that are run.

use std::path::PathBuf;

/// By absolute path.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = crate::driver::GIVEN)]
pub struct Programs {
    /// Envoy
    #[arg(long, value_name = "FILE")]
    pub envoy: PathBuf,
    /// The filter, as wasm
    #[arg(long, value_name = "FILE")]
    pub filter: PathBuf,
    /// weir-control
    #[arg(long, value_name = "FILE")]
    pub control: PathBuf,
    /// weir-governor
    #[arg(long, value_name = "FILE")]
    pub governor: PathBuf,
    /// weir-worker
    #[arg(long, value_name = "FILE")]
    pub worker: PathBuf,
    /// weir-replay
    #[arg(long, value_name = "FILE")]
    pub replay: PathBuf,
    /// The batch job: this program itself, by its subcommand `burn`
    #[arg(skip)]
    pub burn: PathBuf,
}
