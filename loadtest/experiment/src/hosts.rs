// SPDX-License-Identifier: Apache-2.0
//! Hosts: weir-workers, each on a port of its own, and Envoys of their own before them.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::Value;
use weir_stage::envoy::{self, Envoy};
use weir_stage::processes::Processes;
use weir_stage::worker;

use crate::callers::balancer::Balancer;
use crate::callers::bootstrap;

/// Starts so many, each with the command and a file for its ports, and returns their addresses.
pub(crate) fn start(
    processes: &mut Processes,
    hosts: usize,
    command: impl Fn() -> Command,
    folder: &Path,
) -> Result<Vec<SocketAddr>> {
    let names: Vec<String> = (1..=hosts).map(|n| format!("host-{n}")).collect();
    let ports = |name: &str| folder.join(format!("{name}.ports"));
    for name in &names {
        let mut command = command();
        command
            .args(["--listen", "127.0.0.1:0", "--ports-file"])
            .arg(ports(name))
            .env("RUST_LOG", "warn");
        processes.start(name, command)?;
    }
    let address = |name: &String| worker::address(processes, name, &ports(name));
    names.iter().map(address).collect()
}

/// Starts an Envoy of one worker thread with the filters before each host, in the order of the hosts.
pub(crate) fn start_before(
    processes: &mut Processes,
    envoy: &Path,
    hosts: &[SocketAddr],
    (timeout, filters): (&str, &[Value]),
    folder: &Path,
) -> Result<Vec<Envoy>> {
    let mut start = |(n, host): (usize, &SocketAddr)| {
        let node = format!("host-{}-sidecar", n + 1);
        let least = Balancer::LeastRequest;
        let text = bootstrap::alone(&node, least, &[*host], timeout, filters).to_string();
        envoy::start(processes, envoy, &node, &text, folder)
    };
    hosts.iter().enumerate().map(&mut start).collect()
}
