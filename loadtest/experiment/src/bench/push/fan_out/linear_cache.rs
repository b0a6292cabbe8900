// SPDX-License-Identifier: Apache-2.0
//! The peer: go-control-plane's linear cache behind the server in `linear-cache/`.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

use crate::programs;

#[derive(Deserialize)]
struct Ports {
    xds: SocketAddr,
}

/// Starts it for these hosts.
pub(super) fn start(
    processes: &mut Processes,
    program: &Path,
    hosts: &[SocketAddr],
    whole: bool,
    folder: &Path,
) -> Result<(Process, SocketAddr)> {
    let lines: Vec<String> = hosts.iter().map(SocketAddr::to_string).collect();
    let file = folder.join("hosts");
    fs::write(&file, lines.join("\n")).with_context(|| format!("writing {}", file.display()))?;
    let mut command = Command::new(program);
    command.arg("-hosts").arg(&file);
    command.args(whole.then_some("-whole"));
    let (process, Ports { xds }) = programs::start(processes, "linear-cache", command, folder)?;
    Ok((process, xds))
}
