// SPDX-License-Identifier: Apache-2.0
//! What is measured, by absolute path.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};
use serde::de::DeserializeOwned;
use weir_stage::ports;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

/// Each part needs some of them; a part whose program is not named says so and fails.
#[derive(clap::Args)]
pub(crate) struct Programs {
    /// Envoy 1.40
    #[arg(long, value_name = "FILE")]
    pub(crate) envoy: Option<PathBuf>,
    /// weir_filter.wasm
    #[arg(long, value_name = "FILE")]
    pub(crate) filter: Option<PathBuf>,
    /// weir_bench_no_op.wasm
    #[arg(long, value_name = "FILE")]
    pub(crate) no_op: Option<PathBuf>,
    /// The folder of the release build's programs: weir-control, weir-llm-host, weir-replay and
    /// those of the bench itself
    #[arg(long, value_name = "FOLDER")]
    pub(crate) release: Option<PathBuf>,
    /// The endpoint picker of the Kubernetes inference gateway, 1.3.0
    #[arg(long, value_name = "FILE")]
    pub(crate) epp: Option<PathBuf>,
    /// The linear cache of go-control-plane as a server
    #[arg(long, value_name = "FILE")]
    pub(crate) linear_cache: Option<PathBuf>,
}

impl Programs {
    /// The program that this option names.
    pub(crate) fn needed<'a>(path: &'a Option<PathBuf>, option: &str) -> Result<&'a Path> {
        let path = path
            .as_deref()
            .with_context(|| format!("this part needs --{option}"))?;
        ensure!(
            path.is_file(),
            "--{option}: {} is not a file",
            path.display()
        );
        Ok(path)
    }

    /// A program of the release build.
    pub(crate) fn release(&self, name: &str) -> Result<PathBuf> {
        let folder = self.release.as_deref();
        let program = folder.context("this part needs --release")?.join(name);
        ensure!(
            program.is_file(),
            "--release: {} is not a file: is {name} built?",
            program.display()
        );
        Ok(program)
    }
}

/// Starts a program that writes its addresses to a `--ports-file`, and waits for them.
pub(crate) fn start<T: DeserializeOwned>(
    processes: &mut Processes,
    name: &str,
    mut command: Command,
    folder: &Path,
) -> Result<(Process, T)> {
    let file = folder.join(format!("{name}.ports"));
    command.arg("--ports-file").arg(&file);
    let process = processes.start(name, command)?;
    Ok((process, ports::wait(processes, name, &file)?))
}
