// SPDX-License-Identifier: Apache-2.0
//! The programs that are run.

use std::path::PathBuf;

/// By absolute path.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = crate::driver::GIVEN)]
pub struct Programs {
    /// Those of a host behind Weir
    #[command(flatten)]
    pub fleet: crate::programs::Programs,
    /// weir-governor
    #[arg(long, value_name = "FILE")]
    pub governor: PathBuf,
    /// weir-replay
    #[arg(long, value_name = "FILE")]
    pub replay: PathBuf,
    /// Consul, for a host in its mesh
    #[arg(long, value_name = "FILE")]
    pub consul: Option<PathBuf>,
    /// The batch job: this program itself, by its subcommand `burn`
    #[arg(skip)]
    pub burn: PathBuf,
}
