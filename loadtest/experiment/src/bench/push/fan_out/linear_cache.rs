// SPDX-License-Identifier: Apache-2.0
//! The peer: go-control-plane's linear cache behind the server in `linear-cache/`.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde::Deserialize;
use weir_stage::ports;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

use crate::fleet::hosts::Hosts;

#[derive(Deserialize)]
struct Ports {
    xds: SocketAddr,
}

/// Starts it for these hosts.
pub(super) fn start(
    processes: &mut Processes,
    program: &Path,
    hosts: &Hosts,
    whole: bool,
    folder: &Path,
) -> Result<(Process, SocketAddr)> {
    let mut command = Command::new(program);
    command.arg("-hosts").arg(hosts.list(folder)?);
    command.args(whole.then_some("-whole"));
    // As often as weir-control sends a table to a thousand sidecars for newer figures (control-plane/fleet/src/pace.rs).
    command.args(["-publish", "200ms"]);
    let (process, Ports { xds }) = ports::start(processes, "linear-cache", command, folder)?;
    Ok((process, xds))
}
