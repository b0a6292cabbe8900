// SPDX-License-Identifier: Apache-2.0
//! The host: a real weir-worker in a cgroup of its own.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use weir_stage::processes::Processes;
use weir_stage::worker;

use crate::cgroups::Cgroups;
use crate::shared_node::programs::Programs;
use crate::shared_node::work::Work;

/// Threads that run jobs, in all ways: one for each core that it may ever have.
pub const THREADS: u32 = 2;

/// More of its flags: the project does not change.
pub const FLAGS: [&str; 2] = ["--recheck-seconds", "600"];

/// Starts it and returns its address.
///
/// # Errors
/// It could not be started, or died.
pub fn start(
    processes: &mut Processes,
    programs: &Programs,
    cgroups: &Cgroups,
    work: &Work,
    folder: &Path,
) -> Result<SocketAddr> {
    let ports = folder.join("weir-worker.ports");
    let mut command = Command::new(&programs.fleet.worker);
    command
        .arg("--store")
        .arg(&work.folder)
        .args(["--listen", "127.0.0.1:0"])
        .args(["--cores", &THREADS.to_string()])
        .args(FLAGS)
        .arg("--ports-file")
        .arg(&ports)
        .env("RUST_LOG", "warn");
    let process = processes.start("weir-worker", command)?;
    cgroups.take(process.id().unsigned_abs())?;
    worker::address(processes, "weir-worker", &ports)
}
