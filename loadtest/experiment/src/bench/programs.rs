// SPDX-License-Identifier: Apache-2.0
//! What is measured, by absolute path.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use weir_stage::ports;
use weir_stage::processes::Processes;

/// The programs of the bench, by path.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = crate::driver::GIVEN)]
pub struct Programs {
    /// Envoy 1.40
    #[arg(long, value_name = "FILE")]
    pub(crate) envoy: PathBuf,
    /// weir_filter.wasm
    #[arg(long, value_name = "FILE")]
    pub(crate) filter: PathBuf,
    /// weir_bench_no_op.wasm
    #[arg(long, value_name = "FILE")]
    pub(crate) no_op: PathBuf,
    /// libweir_native.so
    #[arg(long, value_name = "FILE")]
    pub(crate) native: PathBuf,
    /// libweir_bench_no_op.so
    #[arg(long, value_name = "FILE")]
    pub(crate) native_no_op: PathBuf,
    /// weir-control
    #[arg(long, value_name = "FILE")]
    pub(crate) control: PathBuf,
    /// weir-llm-host
    #[arg(long, value_name = "FILE")]
    pub(crate) llm_host: PathBuf,
    /// weir-replay
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: PathBuf,
    /// The endpoint picker of the Kubernetes inference gateway, 1.3.0: for request and inference
    #[arg(long, value_name = "FILE")]
    epp: Option<PathBuf>,
    /// The linear cache of go-control-plane as a server: for push
    #[arg(long, value_name = "FILE")]
    linear_cache: Option<PathBuf>,
}

impl Programs {
    pub(crate) fn epp(&self) -> Result<&Path> {
        self.epp.as_deref().context("this part needs --epp")
    }

    pub(crate) fn linear_cache(&self) -> Result<&Path> {
        let program = self.linear_cache.as_deref();
        program.context("this part needs --linear-cache")
    }
}

/// Starts hosts that write their addresses to a `--ports-file`.
pub(crate) fn hosts(
    processes: &mut Processes,
    name: &str,
    command: Command,
    folder: &Path,
) -> Result<Vec<SocketAddr>> {
    #[derive(Deserialize)]
    struct Ports {
        hosts: Vec<SocketAddr>,
    }
    let (_, Ports { hosts }) = ports::start(processes, name, command, folder)?;
    Ok(hosts)
}

/// This program, to be another one of the bench.
pub(crate) fn own(subcommand: &str) -> Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg(subcommand);
    Ok(command)
}
