// SPDX-License-Identifier: Apache-2.0
//! weir-control, serving the callers everything.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::demo::plan::Limits;
use crate::demo::processes::Processes;

const READY: Duration = Duration::from_secs(10);

/// Where weir-control listens.
#[derive(Clone, Copy, Deserialize)]
pub(super) struct Control {
    pub(super) xds: SocketAddr,
}

pub(super) fn start(
    processes: &mut Processes,
    program: &Path,
    config: &Value,
    folder: &Path,
) -> Result<Control> {
    // JSON is YAML too.
    let file = folder.join("weir-control.yaml");
    fs::write(&file, serde_json::to_vec_pretty(config)?)
        .with_context(|| format!("writing {}", file.display()))?;
    let ports = folder.join("weir-control.ports");
    let mut command = Command::new(program);
    command
        .arg("--config")
        .arg(&file)
        .arg("--ports-file")
        .arg(&ports);
    processes.start("weir-control", command)?;
    processes.wait_until("readiness of weir-control", READY, || {
        serde_json::from_slice(&fs::read(&ports).ok()?).ok()
    })
}

/// The configuration of one way: the defaults, but for what makes the way and the plan's limits.
pub(super) fn config(
    selection: &str,
    overload: &str,
    limits: &Limits,
    hosts: &[SocketAddr],
    filter: &Path,
) -> Value {
    let hosts: Vec<Value> = hosts
        .iter()
        .map(|address| json!({"address": address}))
        .collect();
    json!({
        "xds": {"listen": "127.0.0.1:0"},
        "admin": {"listen": "127.0.0.1:0"},
        "clusters": {"rules": {
            "policy": {
                "selection": selection,
                "overload": overload,
                "breaker_queued_jobs": limits.breaker_queued_jobs,
            },
            "dagor": {
                "threshold": limits.dagor_threshold,
                "alpha": limits.dagor_step,
                "beta": limits.dagor_step,
            },
            "hosts": hosts,
            "scrape": {},
            "cache": {},
        }},
        "standalone": {
            // The reason of a choice tells when the first table has come, and is kept with the results.
            "filter": {"wasm": filter, "config": {"debug": true}},
            // Each sidecar takes a free port. The workload has its own deadline.
            "listeners": [{"name": "caller", "address": "127.0.0.1:0", "cluster": "rules", "timeout": "0s"}],
        },
    })
}
