// SPDX-License-Identifier: Apache-2.0
//! The processes, and traffic through them.

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use serde_json::json;
use weir_dashboard_checks::deploy;
use weir_stage::processes::Processes;
use weir_stage::{bootstrap, control, envoy, http, ports, worker};

use crate::programs::Programs;

#[allow(dead_code)] // The governor's own tests use more of it.
#[path = "../../../../../node-governor/tests/cpufreq/mod.rs"]
mod cpufreq;

const LIMIT: Duration = Duration::from_secs(60);
/// Of each round: enough for every class and some hits.
const REQUESTS: usize = 20;

pub(crate) struct Stage {
    processes: Processes,
    listener: SocketAddr,
    pub(crate) prometheus: SocketAddr,
}

#[derive(Deserialize)]
struct Governor {
    admin: SocketAddr,
}

impl Stage {
    pub(crate) fn start(programs: &Programs, folder: &Path) -> Result<Self> {
        let mut processes = Processes::new(folder.join("logs"))?;
        let hosts = hosts(&mut processes, programs, folder)?;
        let config = json!({
            "xds": {"listen": "127.0.0.1:0"},
            "admin": {"listen": "127.0.0.1:0"},
            "clusters": {"rules": {
                "policy": {"overload": "dagor"},
                "hosts": hosts.map(|address| json!({"address": address})),
                "scrape": {},
                "cache": {},
            }},
            "standalone": {
                "filter": {"wasm": programs.filter},
                "listeners": [{"name": "caller", "address": "127.0.0.1:0", "cluster": "rules"}],
            },
        });
        let program = programs.bin.join("weir-control");
        let control = control::start(&mut processes, &program, &config, folder)?;
        let bootstrap = bootstrap::standalone("caller-1", control.xds)?;
        let envoy = envoy::start(
            &mut processes,
            &programs.envoy,
            "caller-1",
            &bootstrap,
            folder,
        )?;
        let governor = governor(&mut processes, programs, folder)?;
        let prometheus = prometheus(&mut processes, programs, folder, |text| {
            let hosts = hosts.map(|host| format!("\"{host}\"")).join(", ");
            [
                ("127.0.0.1:19000", control.admin.to_string()),
                ("127.0.0.1:9901", envoy.admin.to_string()),
                ("\"127.0.0.1:9001\", \"127.0.0.1:9002\"", hosts.clone()),
                ("127.0.0.1:9414", governor.to_string()),
            ]
            .into_iter()
            .try_fold(text, |text: String, (old, new)| {
                ensure!(
                    text.matches(old).count() == 1,
                    "prometheus.yml does not hold {old} once"
                );
                Ok(text.replace(old, &new))
            })
        })?;
        Ok(Self {
            processes,
            listener: envoy.listener,
            prometheus,
        })
    }

    /// A round of requests, of two classes and few keys.
    pub(crate) fn traffic(&mut self) -> Result<()> {
        crate::alive(&mut self.processes)?;
        for number in 0..REQUESTS {
            let priority = ["high", "low"][number % 2];
            request(self.listener, &format!("key-{}", number % 5), priority)?;
        }
        Ok(())
    }
}

/// Whatever it is answered: what is counted is that it was.
fn request(listener: SocketAddr, key: &str, priority: &str) -> Result<()> {
    let mut stream = TcpStream::connect(listener)?;
    stream.set_read_timeout(Some(LIMIT))?;
    write!(
        stream,
        "GET / HTTP/1.1\r\nhost: rules\r\nx-weir-key: {key}\r\nx-weir-priority: {priority}\r\n\
         x-emulate-bytes: 1000\r\nconnection: close\r\n\r\n"
    )?;
    stream.read_to_end(&mut Vec::new())?;
    Ok(())
}

fn hosts(processes: &mut Processes, programs: &Programs, folder: &Path) -> Result<[SocketAddr; 2]> {
    let mut start = |name: &str| {
        let file = folder.join(format!("{name}.ports"));
        let mut command = Command::new(programs.bin.join("weir-worker"));
        command
            .args(["--emulate", "--listen", "127.0.0.1:0", "--ports-file"])
            .arg(&file);
        processes.start(name, command)?;
        worker::address(processes, name, &file)
    };
    Ok([start("host-1")?, start("host-2")?])
}

/// A governor of two cores that are plain files.
fn governor(processes: &mut Processes, programs: &Programs, folder: &Path) -> Result<SocketAddr> {
    let root = folder.join("root");
    for core in 0..2 {
        cpufreq::make(&root, core, &[core])?;
    }
    std::os::unix::fs::symlink("/proc", root.join("proc"))?;
    let (config, ports) = (root.join("governor.yaml"), root.join("ports"));
    let text = format!(
        "policy: {{ three_state: {{}} }}\nstate_directory: {}\n\
         events: {{ path: {} }}\nadmin: {{ listen: '127.0.0.1:0' }}\n",
        root.join("run").display(),
        root.join("events/weir.events").display()
    );
    fs::write(&config, text)?;
    let mut command = Command::new(programs.bin.join("weir-governor"));
    command.arg("--root").arg(&root).args(["run", "--config"]);
    command.arg(&config).arg("--ports-file").arg(&ports);
    processes.start("governor", command)?;
    let Governor { admin } = ports::wait(processes, "governor", &ports)?;
    Ok(admin)
}

/// With the project's own configuration, but for where its targets are.
fn prometheus(
    processes: &mut Processes,
    programs: &Programs,
    folder: &Path,
    targets: impl FnOnce(String) -> Result<String>,
) -> Result<SocketAddr> {
    let ours = deploy().join("prometheus");
    let text = targets(fs::read_to_string(ours.join("prometheus.yml"))?)?;
    let rules = ours.join("rules/weir.yml");
    let text = text.replace("- rules/weir.yml", &format!("- {}", rules.display()));
    // The test looks at a minute.
    let text = text.replace("scrape_interval: 15s", "scrape_interval: 1s");
    let text = text.replace("scrape_timeout: 10s", "scrape_timeout: 900ms");
    let config = folder.join("prometheus.yml");
    fs::write(&config, text).context("prometheus.yml")?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let mut command = Command::new(&programs.prometheus);
    command
        .arg(format!("--config.file={}", config.display()))
        .arg(format!(
            "--storage.tsdb.path={}",
            folder.join("data").display()
        ))
        .arg(format!("--web.listen-address={address}"));
    processes.start("prometheus", command)?;
    processes.wait_until("Prometheus' readiness", LIMIT, || {
        http::get(address, "/-/ready").ok()
    })?;
    Ok(address)
}
