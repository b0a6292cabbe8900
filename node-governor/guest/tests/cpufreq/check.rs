// SPDX-License-Identifier: Apache-2.0
//! What `weir-governor check` says of a kernel.

use anyhow::Result;
use weir_guest::Guest;

use crate::stage::Scenario;

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "check_tells_what_the_kernel_offers_and_how_to_get_more",
    check,
)];

/// Runs it; sees that it ends with this code and says all of this.
fn says(guest: &mut Guest, code: u8, all: &[&str]) -> Result<()> {
    let before = guest.cores()?;
    let answer = guest.run("weir-governor check")?;
    assert_eq!(answer.code, code, "{}", answer.output);
    for words in all {
        assert!(
            answer.output.contains(words),
            "`{words}` is not in:\n{}",
            answer.output
        );
    }
    // It changes nothing.
    for (number, core) in guest.cores()? {
        assert_eq!(core.governor, before[&number].governor, "core {number}");
    }
    Ok(())
}

fn check(guest: &mut Guest) -> Result<()> {
    let table = "1 GHz, 1.2 GHz, 1.4 GHz, 1.6 GHz, 1.8 GHz, 2 GHz, 2.2 GHz, 2.4 GHz, 2.6 GHz";
    let third = format!("cpu3: {table}, acpi-cpufreq, governor schedutil, driver userspace");
    says(guest, 0, &[&third, "no RAPL", "cores can be governed"])?;
    guest.sh("rmmod cpufreq_userspace; echo 0 > /sys/devices/system/cpu/cpu2/online")?;
    let all = [
        "driver clamp",
        "modprobe cpufreq_userspace",
        "policy2: all offline",
    ];
    says(guest, 0, &all)?;
    guest.sh("echo 1 > /sys/devices/system/cpu/cpu2/online; rmmod acpi-cpufreq")?;
    let cpufreq = ["missing", "modprobe acpi-cpufreq"];
    says(guest, 0, &cpufreq)?;
    let frequencies = "frequencies cannot be set, but cores can be divided";
    says(guest, 0, &["cgroup v2 at /sys/fs/cgroup", frequencies])?;
    guest.sh("umount /sys/fs/cgroup")?;
    says(guest, 1, &cpufreq)?;
    says(guest, 1, &["cores cannot be governed"])
}
