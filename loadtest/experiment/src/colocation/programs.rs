// SPDX-License-Identifier: Apache-2.0
//! The programs that run, and how one is started with the libraries that were unpacked beside it.

use std::path::{Path, PathBuf};
use std::process::Command;

use weir_memcached_load::server::libraries;

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

/// A command that finds its libraries.
#[must_use]
pub fn command(program: &Path) -> Command {
    let mut command = Command::new(program);
    if let Some(libraries) = libraries(program) {
        command.env("LD_LIBRARY_PATH", libraries);
    }
    command
}
