// SPDX-License-Identifier: Apache-2.0
//! weir-control as a process.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http;
use crate::ports;
use crate::processes::Processes;
use crate::usage::Process;

/// A weir-control that serves.
#[derive(Debug, Clone, Copy)]
pub struct Control {
    /// For what it costs.
    pub process: Process,
    /// Where sidecars connect.
    pub xds: SocketAddr,
    /// Its admin pages.
    pub admin: SocketAddr,
}

#[derive(Deserialize)]
struct Ports {
    xds: SocketAddr,
    admin: SocketAddr,
}

/// A configuration with these clusters, whose listeners take free ports.
#[must_use]
pub fn config(clusters: Value) -> Value {
    json!({
        "xds": {"listen": "127.0.0.1:0"},
        "admin": {"listen": "127.0.0.1:0"},
        "clusters": clusters,
    })
}

/// Starts it with this configuration, whose listeners should be on port 0, and waits until it serves.
///
/// # Errors
/// It could not be started, or died.
pub fn start(
    processes: &mut Processes,
    program: &Path,
    config: &Value,
    folder: &Path,
) -> Result<Control> {
    // JSON is YAML too.
    let file = folder.join("weir-control.yaml");
    fs::write(&file, serde_json::to_vec_pretty(config)?)
        .with_context(|| format!("writing {}", file.display()))?;
    let mut command = Command::new(program);
    command.arg("--config").arg(&file);
    let (process, Ports { xds, admin }) = ports::start(processes, "weir-control", command, folder)?;
    Ok(Control {
        process,
        xds,
        admin,
    })
}

/// The addresses of a cluster's hosts that weir-control takes for up, as it tells on `/tables` of its admin pages.
///
/// # Errors
/// It does not answer, or knows no such cluster.
pub fn hosts_up(admin: SocketAddr, cluster: &str) -> Result<Vec<SocketAddr>> {
    let page = http::get(admin, "/tables")?;
    let tables: Value = serde_json::from_str(&page.body)?;
    let hosts = tables
        .pointer(&format!("/clusters/{cluster}/hosts"))
        .and_then(Value::as_array)
        .with_context(|| format!("no hosts in {}", page.body))?;
    let up = hosts.iter().filter(|host| host["state"] == "up");
    up.map(|host| Ok(host["address"].as_str().context("an address")?.parse()?))
        .collect()
}
