// SPDX-License-Identifier: Apache-2.0
//! The programs that run.

use std::path::PathBuf;

/// Absolute paths.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = crate::driver::GIVEN)]
pub struct Programs {
    /// The service
    #[arg(long, value_name = "FILE")]
    pub memcached: PathBuf,
    /// The load client, weir-memcached-load
    #[arg(long, value_name = "FILE")]
    pub load: PathBuf,
    /// A batch job
    #[arg(long, value_name = "FILE")]
    pub stress_ng: PathBuf,
    /// A batch job
    #[arg(long, value_name = "FILE")]
    pub x264: PathBuf,
    /// A batch job
    #[arg(long, value_name = "FILE")]
    pub zstd: PathBuf,
    /// weir-governor
    #[arg(long, value_name = "FILE")]
    pub governor: PathBuf,
}

#[cfg(test)]
impl Programs {
    /// All of them are this one.
    pub(crate) fn all(program: PathBuf) -> Self {
        Self {
            memcached: program.clone(),
            load: program.clone(),
            stress_ng: program.clone(),
            x264: program.clone(),
            zstd: program.clone(),
            governor: program,
        }
    }
}
