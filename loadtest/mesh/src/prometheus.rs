// SPDX-License-Identifier: Apache-2.0
//! Prometheus, which reads the pages of all.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use weir_needs::Ports;
use weir_stage::http;
use weir_stage::processes::Processes;

use crate::consul::Consul;
use crate::control::Control;
use crate::description::Description;

/// Its name among the processes.
pub(crate) const NAME: &str = "prometheus";
const READY: Duration = Duration::from_secs(60);

/// Starts it and waits until it serves.
pub(crate) fn start(
    processes: &mut Processes,
    program: &Path,
    folder: &Path,
    listen: SocketAddr,
    consul: &Consul,
    controls: &[Control],
) -> Result<()> {
    let job = |name: &str, path: &str, targets: Vec<SocketAddr>| json!({"job_name": name, "metrics_path": path, "static_configs": [{"targets": targets}]});
    let found = |name: &str, path: &str| json!({"job_name": name, "metrics_path": path, "file_sd_configs": [{"files": [format!("{name}.json")]}]});
    let admins = controls.iter().map(|control| control.admin).collect();
    let mut agent = job("consul", "/v1/agent/metrics", vec![consul.http()]);
    agent["params"] = json!({"format": ["prometheus"]});
    let config = json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s"},
        "scrape_configs": [
            found("hosts", "/metrics"),
            found("sidecars", "/stats/prometheus"),
            job("weir-control", "/metrics", admins),
            agent,
        ],
    });
    serve(processes, program, folder, listen, &config)
}

/// Starts one without a mesh that reads what the configuration says; returns where it is when it serves.
///
/// # Errors
/// It does not come up.
pub fn alone(
    processes: &mut Processes,
    program: &Path,
    folder: &Path,
    config: &Value,
) -> Result<SocketAddr> {
    let listen = (Ipv4Addr::LOCALHOST, Ports::of_this_process().take()?).into();
    serve(processes, program, folder, listen, config)?;
    Ok(listen)
}

fn serve(
    processes: &mut Processes,
    program: &Path,
    folder: &Path,
    listen: SocketAddr,
    config: &Value,
) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let file = folder.join("prometheus.yml");
    // JSON is YAML too.
    fs::write(&file, serde_json::to_vec_pretty(config)?)?;
    let mut command = Command::new(program);
    command
        .arg(format!("--config.file={}", file.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address={listen}"))
        .arg("--log.level=warn");
    processes.start(NAME, command)?;
    processes.wait_until("readiness of Prometheus", READY, || {
        http::get(listen, "/-/ready").ok()
    })?;
    Ok(())
}

/// Writes whose pages it reads; it looks at the files by itself.
pub(crate) fn targets(folder: &Path, mesh: &Description) -> Result<()> {
    let hosts = mesh.hosts.iter().map(|host| {
        json!({"targets": [host.application], "labels": {"host": host.name, "sidecar": host.address}})
    });
    let sidecars = mesh.hosts.iter().map(|host| (&*host.name, host.admin));
    let callers = mesh
        .callers
        .iter()
        .map(|caller| (&*caller.name, caller.admin));
    let controls = mesh.controls.iter();
    let controls = controls.map(|control| (&*control.name, control.sidecar));
    let sidecars = sidecars
        .chain(callers)
        .chain(controls)
        .map(|(name, admin)| json!({"targets": [admin], "labels": {"of": name}}));
    write(folder, "hosts", hosts.collect())?;
    write(folder, "sidecars", sidecars.collect())
}

fn write(folder: &Path, name: &str, targets: Vec<Value>) -> Result<()> {
    let file = folder.join(format!("{name}.json"));
    weir_whole_file::write(&file, Value::from(targets).to_string())
        .with_context(|| format!("writing {}", file.display()))
}
