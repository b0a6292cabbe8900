// SPDX-License-Identifier: Apache-2.0
use std::path::PathBuf;

/// Programs and files that it needs.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = crate::driver::GIVEN)]
pub struct Programs {
    #[command(flatten)]
    pub(crate) fleet: crate::programs::Programs,
    /// weir-replay
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: PathBuf,
    /// weir-feeds, for hosts that do the work
    #[arg(long, value_name = "FILE")]
    pub(crate) feeds: Option<PathBuf>,
    /// Recorded traces
    #[arg(long, value_name = "FOLDER", default_value = "loadtest/traces")]
    pub(crate) traces: PathBuf,
}
