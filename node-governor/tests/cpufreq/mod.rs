// SPDX-License-Identifier: Apache-2.0
//! Frequency policies that are plain files: 1.0, 1.6, 2.0 and 2.6 GHz.

use std::io;
use std::path::{Path, PathBuf};

/// A policy as a governor finds it.
pub(crate) const FOUND: [(&str, &str); 4] = [
    ("scaling_governor", "schedutil"),
    ("scaling_setspeed", "<unsupported>"),
    ("scaling_min_freq", "1000000"),
    ("scaling_max_freq", "2600000"),
];

/// The folder of a policy.
pub(crate) fn folder(root: &Path, policy: usize) -> PathBuf {
    root.join(format!("sys/devices/system/cpu/cpufreq/policy{policy}"))
}

/// Makes a policy of these cores.
pub(crate) fn make(root: &Path, policy: usize, cores: &[usize]) -> io::Result<()> {
    let folder = folder(root, policy);
    std::fs::create_dir_all(&folder)?;
    let cores: Vec<String> = cores.iter().map(ToString::to_string).collect();
    let files = [
        ("scaling_driver", "acpi-cpufreq"),
        (
            "scaling_available_governors",
            "powersave userspace schedutil",
        ),
        (
            "scaling_available_frequencies",
            "2600000 2000000 1600000 1000000",
        ),
        ("cpuinfo_min_freq", "1000000"),
        ("cpuinfo_max_freq", "2600000"),
        ("affected_cpus", &cores.join(" ")),
    ];
    for (file, text) in files.into_iter().chain(FOUND) {
        std::fs::write(folder.join(file), format!("{text}\n"))?;
    }
    Ok(())
}
