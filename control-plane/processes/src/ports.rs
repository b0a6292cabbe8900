// SPDX-License-Identifier: Apache-2.0
//! Where a program that was started on port 0 listens: it writes a JSON file once it does.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::processes::Processes;
use crate::usage::Process;

const READY: Duration = Duration::from_secs(10);

/// Starts a program that takes a `--ports-file`, and waits for what it writes to it: `NAME.ports` in the folder.
///
/// # Errors
/// It could not be started, or died.
pub fn start<T: DeserializeOwned>(
    processes: &mut Processes,
    name: &str,
    mut command: Command,
    folder: &Path,
) -> Result<(Process, T)> {
    let file = folder.join(format!("{name}.ports"));
    command.arg("--ports-file").arg(&file);
    let process = processes.start(name, command)?;
    Ok((process, wait(processes, name, &file)?))
}

/// Waits for the file of the program's `--ports-file`.
///
/// # Errors
/// A process died meanwhile, or the file did not come.
pub fn wait<T: DeserializeOwned>(processes: &mut Processes, name: &str, file: &Path) -> Result<T> {
    processes.wait_until(&format!("readiness of {name}"), READY, || {
        serde_json::from_slice(&fs::read(file).ok()?).ok()
    })
}

/// Writes such a file: a reader sees all of it or none.
///
/// # Errors
/// The folder is missing or cannot be written.
pub fn write(file: &Path, ports: &Value) -> Result<()> {
    weir_whole_file::write(file, ports.to_string())
        .with_context(|| format!("writing {}", file.display()))
}
