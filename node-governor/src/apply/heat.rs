// SPDX-License-Identifier: Apache-2.0
//! Whose limit it is that the kernel shows. `scaling_max_freq` shows the lowest that anybody asks for: an
//! administrator, the firmware, or a cooling device. What is written there becomes the administrator's, and stays when
//! the machine has cooled down: so a limit for heat must not be put back as if it had been set.

use std::path::Path;

use super::cpufreq::Files;
use crate::root::{Root, line, number};

const DEVICES: &str = "sys/class/thermal";

/// What holds a policy with these cores down to this limit, by its name; none where the limit is an
/// administrator's, as far as the kernel says.
pub(super) fn holds_down(root: &Root, files: &Files, limit: u32) -> Option<String> {
    // Of acpi-cpufreq: what the firmware allows at the moment (_PPC).
    if number(&files.path("bios_limit")).ok().flatten() == Some(limit) {
        return Some("bios_limit".to_owned());
    }
    let cores = files.online().unwrap_or_default();
    let devices = std::fs::read_dir(root.path(DEVICES)).ok()?;
    devices
        .filter_map(|device| cools(&device.ok()?.path(), &cores))
        .min()
}

/// Says so if this is a device that cools one of these cores by their frequency, and does.
fn cools(device: &Path, cores: &[u32]) -> Option<String> {
    let kind = line(&device.join("type")).ok()?;
    let state = number(&device.join("cur_state")).ok().flatten()?;
    let name = device.file_name()?.to_string_lossy();
    (state > 0 && is_for(&kind, cores)).then(|| format!("{name} ({kind}) at {state}"))
}

/// Of drivers/thermal/cpufreq_cooling.c, and of drivers/acpi/processor_thermal.c, which says not which core it is for.
fn is_for(kind: &str, cores: &[u32]) -> bool {
    match kind.strip_prefix("cpufreq-cpu") {
        Some(core) => core.parse().is_ok_and(|core| cores.contains(&core)),
        None => kind == "Processor" || kind.starts_with("thermal-cpufreq-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_for_the_cores_that_it_names_or_for_all() {
        for (kind, cores, is) in [
            ("cpufreq-cpu4", &[4, 5][..], true),
            ("cpufreq-cpu4", &[0, 1], false),
            ("cpufreq-cpu", &[0], false),
            ("thermal-cpufreq-1", &[0], true),
            ("Processor", &[7], true),
            ("intel_powerclamp", &[0], false),
            ("Fan", &[0], false),
        ] {
            assert_eq!(is_for(kind, cores), is, "{kind} {cores:?}");
        }
    }
}
