// SPDX-License-Identifier: Apache-2.0
//! That the guest's cpufreq is what a governor will find on a machine: what its tests stand on.

use anyhow::Result;
use weir_guest::{CORES, FREQUENCIES_KHZ, Guest};

use crate::stage::Scenario;

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("each_core_has_every_frequency_of_its_own", every_frequency),
    (
        "a_speed_between_two_frequencies_is_the_upper_one",
        rounded_up,
    ),
    (
        "speeds_are_set_under_the_userspace_governor_alone",
        other_governor,
    ),
    (
        "without_the_userspace_governor_the_clamps_set_the_frequency",
        clamps,
    ),
    ("the_kernel_counts_every_change_of_frequency", accounts),
    (
        "a_core_that_comes_back_keeps_its_governor_and_clamps_but_not_its_speed",
        offline,
    ),
];

fn every_frequency(guest: &mut Guest) -> Result<()> {
    guest.sh("for f in /sys/devices/system/cpu/cpu?/cpufreq; do echo userspace > $f/scaling_governor; done")?;
    for turn in 0..FREQUENCIES_KHZ.len() {
        // Each core at another one, and each at every one in the end.
        let wanted: [u32; CORES] =
            std::array::from_fn(|core| FREQUENCIES_KHZ[(turn + 2 * core) % FREQUENCIES_KHZ.len()]);
        let script: Vec<String> = wanted
            .iter()
            .enumerate()
            .map(|(core, khz)| set(core, *khz))
            .collect();
        guest.sh(&script.join("\n"))?;
        assert_eq!(guest.registers_khz()?, wanted, "from outside");
        for (number, core) in guest.cores()? {
            assert_eq!(core.now_khz, wanted[number], "from inside, core {number}");
            assert_eq!(
                core.set_khz,
                Some(wanted[number]),
                "from inside, core {number}"
            );
        }
    }
    Ok(())
}

fn rounded_up(guest: &mut Guest) -> Result<()> {
    guest.sh("echo userspace > /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor")?;
    guest.sh(&set(1, 1_500_000))?;
    assert_eq!(guest.registers_khz()?[1], 1_600_000);
    Ok(())
}

fn other_governor(guest: &mut Guest) -> Result<()> {
    let cores = guest.cores()?;
    assert_eq!(cores[&2].governor, "schedutil");
    assert_eq!(cores[&2].set_khz, None);
    assert_ne!(guest.run(&set(2, 1_000_000))?.code, 0);
    Ok(())
}

fn clamps(guest: &mut Guest) -> Result<()> {
    guest.sh("rmmod cpufreq_userspace")?;
    let offered =
        guest.sh("cat /sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors")?;
    assert!(!offered.contains("userspace"), "{offered}");
    guest.sh("cd /sys/devices/system/cpu/cpu3/cpufreq
        echo performance > scaling_governor
        echo 1800000 > scaling_max_freq")?;
    assert_eq!(guest.registers_khz()?[3], 1_800_000);
    Ok(())
}

fn offline(guest: &mut Guest) -> Result<()> {
    guest.sh("echo userspace > /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor")?;
    guest.sh(&set(2, 1_400_000))?;
    guest.sh("cd /sys/devices/system/cpu/cpu2/cpufreq; echo 1800000 > scaling_max_freq; echo 1200000 > scaling_min_freq")?;
    guest.sh("echo 0 > /sys/devices/system/cpu/cpu2/online")?;
    assert!(!guest.cores()?.contains_key(&2));
    guest.sh("echo 1 > /sys/devices/system/cpu/cpu2/online")?;
    let back = guest.cores()?[&2].clone();
    assert_eq!(back.governor, "userspace");
    assert_eq!((back.min_khz, back.max_khz), (1_200_000, 1_800_000));
    // Of its speed the kernel has only a guess.
    assert!(
        back.set_khz
            .is_some_and(|khz| (1_200_000..=1_800_000).contains(&khz))
    );
    Ok(())
}

fn accounts(guest: &mut Guest) -> Result<()> {
    guest.sh("echo userspace > /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor")?;
    guest.sh(&set(1, 1_000_000))?;
    guest.forget_transitions()?;
    // Too quick for anyone who looks from time to time.
    guest.sh(&[set(1, 2_000_000), set(1, 2_600_000), set(1, 1_000_000)].join("\n"))?;
    let expected = [
        (1_000_000, 2_000_000),
        (2_000_000, 2_600_000),
        (2_600_000, 1_000_000),
    ];
    assert_eq!(guest.transitions(1)?, expected.map(|step| (step, 1)).into());
    Ok(())
}

fn set(core: usize, khz: u32) -> String {
    format!("echo {khz} > /sys/devices/system/cpu/cpu{core}/cpufreq/scaling_setspeed")
}
