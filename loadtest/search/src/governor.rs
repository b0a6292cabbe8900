// SPDX-License-Identifier: Apache-2.0
//! The governor, on cores that are files in a folder: it reads real events, and what it writes changes no clock.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use weir_stage::http;
use weir_stage::processes::Processes;

const START: Duration = Duration::from_secs(30);

/// What each core offers, as document 002's machine (section 4.1): 1.0 to 2.6 GHz.
const FILES: [(&str, &str); 9] = [
    ("scaling_driver", "acpi-cpufreq"),
    (
        "scaling_available_governors",
        "performance powersave ondemand userspace",
    ),
    ("scaling_governor", "ondemand"),
    ("scaling_setspeed", "<unsupported>"),
    ("scaling_min_freq", "1000000"),
    ("scaling_max_freq", "2600000"),
    ("cpuinfo_min_freq", "1000000"),
    ("cpuinfo_max_freq", "2600000"),
    (
        "scaling_available_frequencies",
        "2600000 2400000 2200000 2000000 1800000 1600000 1400000 1200000 1000000",
    ),
];

/// A governor that runs as long as its `Processes`.
pub struct Governor {
    cores: Vec<PathBuf>,
    admin: SocketAddr,
}

#[derive(Deserialize)]
struct Ports {
    admin: SocketAddr,
}

/// Starts it in `folder`: with the defaults of document 002's policy, but ticking every 10 ms.
///
/// # Errors
/// The folder cannot be written, or the governor ends or does not take the cores.
pub fn start(
    program: &Path,
    folder: &Path,
    events: &Path,
    processes: &mut Processes,
) -> Result<Governor> {
    let root = folder.join("root");
    let cores = simulated_cores(&root)?;
    let config = folder.join("governor.yaml");
    let text = format!(
        "policy: {{ three_state: {{}} }}\ntick: 10ms\nfunctions: [{{ id: 1, name: search }}]\n\
         events: {{ path: {} }}\nadmin: {{ listen: \"127.0.0.1:0\" }}\nstate_directory: {}\n",
        events.display(),
        folder.join("state").display()
    );
    fs::write(&config, text).with_context(|| format!("writing {}", config.display()))?;
    let ports = folder.join("ports.json");
    let _ = fs::remove_file(&ports);
    let mut command = Command::new(program);
    command.arg("--root").arg(&root).arg("run");
    command.arg("--config").arg(&config);
    command.arg("--ports-file").arg(&ports);
    processes.start("governor", command)?;
    let found: Ports = processes.wait_until("the governor's readiness", START, || {
        serde_json::from_slice(&fs::read(&ports).ok()?).ok()
    })?;
    Ok(Governor {
        cores,
        admin: found.admin,
    })
}

impl Governor {
    /// A counter of its page of metrics, over all labels; 0 where there is none of this name.
    ///
    /// # Errors
    /// It does not answer.
    pub fn counted(&self, name: &str) -> Result<u64> {
        let page = http::get(self.admin, "/metrics")?.body;
        let values = page.lines().filter_map(|line| {
            let (series, value) = line.rsplit_once(' ')?;
            (series.split('{').next() == Some(name)).then_some(value)
        });
        Ok(values
            .filter_map(|value| value.parse::<f64>().ok())
            .sum::<f64>() as u64)
    }

    /// The frequency that each core has been told, or what is written in its place.
    ///
    /// # Errors
    /// A file cannot be read.
    pub fn told(&self) -> Result<Vec<String>> {
        let read = |core: &PathBuf| {
            let file = core.join("scaling_setspeed");
            let text = fs::read_to_string(&file);
            let text = text.with_context(|| format!("reading {}", file.display()))?;
            Ok(text.lines().next().unwrap_or_default().to_owned())
        };
        self.cores.iter().map(read).collect()
    }
}

/// One for each core of this machine, and the machine's own processes.
fn simulated_cores(root: &Path) -> Result<Vec<PathBuf>> {
    let mut cores = Vec::new();
    for core in 0..std::thread::available_parallelism()?.get() {
        let policy = root.join(format!("sys/devices/system/cpu/cpufreq/policy{core}"));
        fs::create_dir_all(&policy).with_context(|| format!("creating {}", policy.display()))?;
        fs::write(policy.join("affected_cpus"), format!("{core}\n"))?;
        for (file, text) in FILES {
            fs::write(policy.join(file), format!("{text}\n"))?;
        }
        cores.push(policy);
    }
    let proc = root.join("proc");
    if !proc.exists() {
        symlink("/proc", &proc).context("linking /proc")?;
    }
    Ok(cores)
}
