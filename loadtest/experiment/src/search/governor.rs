// SPDX-License-Identifier: Apache-2.0
//! The governor, on cores that are files in a folder: it reads real events, and what it writes changes no clock.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::json;

use crate::governor::Governor;

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

/// A governor and the cores that it believes in.
pub struct Governed {
    governor: Governor,
    cores: Vec<PathBuf>,
}

/// Starts it in `folder`: with the defaults of document 002's policy, but ticking every 10 ms.
///
/// # Errors
/// The folder cannot be written, or the governor ends or does not take the cores.
pub fn start(program: &Path, folder: &Path, events: &Path) -> Result<Governed> {
    let root = folder.join("root");
    let cores = simulated_cores(&root)?;
    let configuration = json!({
        "policy": {"three_state": {}},
        "tick": "10ms",
        "functions": [{"id": 1, "name": "search"}],
        "events": {"path": events},
        "admin": {"listen": "127.0.0.1:0"},
        "state_directory": folder.join("state"),
    });
    let governor = Governor::start(program, Some(&root), &configuration, folder)?;
    Ok(Governed { governor, cores })
}

impl Governed {
    /// See [`Governor::counted`].
    ///
    /// # Errors
    /// It does not answer.
    pub fn counted(&self, name: &str) -> Result<u64> {
        self.governor.counted(name)
    }

    /// # Errors
    /// It has ended, with the end of its log.
    pub fn must_live(&mut self) -> Result<()> {
        self.governor.must_live()
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
