// SPDX-License-Identifier: Apache-2.0
//! The emulated hosts. New processes for every way, so all start with empty caches.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;

use crate::demo::plan::Plan;
use crate::demo::processes::Processes;

const READY: Duration = Duration::from_secs(10);

#[derive(Deserialize)]
struct Ports {
    listen: SocketAddr,
}

/// Starts the hosts and returns their addresses.
pub(super) fn start(
    processes: &mut Processes,
    program: &Path,
    plan: &Plan,
    folder: &Path,
) -> Result<Vec<SocketAddr>> {
    let names: Vec<String> = (1..=plan.hosts).map(|n| format!("host-{n}")).collect();
    for name in &names {
        let mut command = Command::new(program);
        command
            .args(["--emulate", "--listen", "127.0.0.1:0"])
            .args(["--cores", &plan.cores.to_string()])
            .args(["--cache-bytes", plan.cache_bytes])
            .args(["--fetch-bytes-per-second", plan.fetch_bytes_per_second])
            .arg("--ports-file")
            .arg(folder.join(format!("{name}.ports")))
            .env("RUST_LOG", "warn");
        processes.start(name, command)?;
    }
    let address = |name: &String| {
        let file = folder.join(format!("{name}.ports"));
        processes.wait_until(&format!("readiness of {name}"), READY, || {
            let ports: Ports = serde_json::from_slice(&fs::read(&file).ok()?).ok()?;
            Some(ports.listen)
        })
    };
    names.iter().map(address).collect()
}
