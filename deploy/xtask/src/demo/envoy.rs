// SPDX-License-Identifier: Apache-2.0
//! The callers' sidecars.

mod bootstrap;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::demo::http;
use crate::demo::processes::Processes;

pub(super) use bootstrap::{alone, with_weir};

/// Compiling the filter takes Envoy a second or two on a busy machine.
const READY: Duration = Duration::from_secs(30);

/// Starts a sidecar and returns where it takes requests, once it does. It picks free ports.
pub(super) fn start(
    processes: &mut Processes,
    program: &Path,
    name: &str,
    bootstrap: &str,
    folder: &Path,
) -> Result<SocketAddr> {
    // JSON is YAML too.
    let config = folder.join(format!("{name}.yaml"));
    fs::write(&config, bootstrap).with_context(|| format!("writing {}", config.display()))?;
    let address_file: PathBuf = folder.join(format!("{name}.admin"));
    let mut command = Command::new(program);
    command
        .arg("-c")
        .arg(&config)
        .arg("--admin-address-path")
        .arg(&address_file)
        .args(["--concurrency", "1", "--disable-hot-restart"])
        .args([
            "--log-level",
            "warning",
            "--component-log-level",
            "wasm:info",
        ]);
    processes.start(name, command)?;
    processes.wait_until(&format!("readiness of {name}"), READY, || {
        listening(
            fs::read_to_string(&address_file)
                .ok()?
                .trim()
                .parse()
                .ok()?,
        )
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
