// SPDX-License-Identifier: Apache-2.0
//! Programs of a soak.

use std::path::PathBuf;

/// The programs of a soak, by path.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = crate::driver::GIVEN)]
pub struct Programs {
    /// Envoy with the V8 runtime
    #[arg(long, value_name = "FILE")]
    pub envoy: PathBuf,
    /// The filter, built with its feature `crash-test`
    #[arg(long, value_name = "FILE")]
    pub filter: PathBuf,
    /// weir-control
    #[arg(long, value_name = "FILE")]
    pub control: PathBuf,
    /// weir-worker
    #[arg(long, value_name = "FILE")]
    pub worker: PathBuf,
}
