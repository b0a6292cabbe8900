// SPDX-License-Identifier: Apache-2.0
//! Sidecars.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::http;
use crate::processes::Processes;
use crate::usage::Process;

/// Far more than it takes where the machine is its own; beside six other suites on two cores 30 s were too few.
const READY: Duration = Duration::from_secs(120);

/// A sidecar that takes requests.
#[derive(Debug, Clone, Copy)]
pub struct Envoy {
    /// For what it costs.
    pub process: Process,
    /// Its admin pages.
    pub admin: SocketAddr,
    /// Its first listener.
    pub listener: SocketAddr,
}

/// Starts a sidecar with one worker thread, and waits until it takes requests. Ports in the
/// bootstrap should be 0.
///
/// # Errors
/// It could not be started, or died.
pub fn start(
    processes: &mut Processes,
    program: &Path,
    name: &str,
    bootstrap: &str,
    folder: &Path,
) -> Result<Envoy> {
    start_with_workers(processes, program, 1, name, bootstrap, folder)
}

/// [`start`] with so many worker threads.
///
/// # Errors
/// The same.
pub fn start_with_workers(
    processes: &mut Processes,
    program: &Path,
    workers: usize,
    name: &str,
    bootstrap: &str,
    folder: &Path,
) -> Result<Envoy> {
    // JSON is YAML too.
    let config = folder.join(format!("{name}.yaml"));
    fs::write(&config, bootstrap).with_context(|| format!("writing {}", config.display()))?;
    let address_file: PathBuf = folder.join(format!("{name}.admin"));
    // Of an earlier one of this name.
    let _ = fs::remove_file(&address_file);
    let mut command = Command::new(program);
    command
        .arg("-c")
        .arg(&config)
        .arg("--admin-address-path")
        .arg(&address_file)
        .args(["--concurrency", &workers.to_string()])
        .arg("--disable-hot-restart")
        .args([
            "--log-level",
            "warning",
            "--component-log-level",
            "wasm:info",
        ]);
    let process = processes.start(name, command)?;
    processes.wait_until(&format!("readiness of {name}"), READY, || {
        let admin = fs::read_to_string(&address_file)
            .ok()?
            .trim()
            .parse()
            .ok()?;
        let listener = listening(admin)?;
        Some(Envoy {
            process,
            admin,
            listener,
        })
    })
}

/// The address of the caller's listener, once Envoy serves.
fn listening(admin: SocketAddr) -> Option<SocketAddr> {
    http::get(admin, "/ready").ok()?;
    listener_address(&http::get(admin, "/listeners?format=json").ok()?.body)
}

fn listener_address(page: &str) -> Option<SocketAddr> {
    let page: Value = serde_json::from_str(page).ok()?;
    let socket = page.pointer("/listener_statuses/0/local_address/socket_address")?;
    let host = socket.get("address")?.as_str()?;
    let port = socket.get("port_value")?.as_u64()?;
    format!("{host}:{port}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listener_is_read_from_the_admin_page() {
        let page = r#"{"listener_statuses":[{"name":"caller","local_address":{"socket_address":
            {"address":"127.0.0.1","port_value":41234}}}]}"#;
        assert_eq!(listener_address(page), "127.0.0.1:41234".parse().ok());
        assert_eq!(listener_address("{}"), None);
    }
}
