// SPDX-License-Identifier: Apache-2.0
//! However the governor ends, each core is as it was found.

use std::collections::BTreeMap;

use anyhow::Result;
use weir_guest::Guest;

use crate::stage::Scenario;
use crate::{governor, hot};

pub(crate) const SCENARIOS: &[Scenario] = &[
    ("after_sigterm_each_core_is_as_it_was_found", |guest| {
        ends(guest, "TERM")
    }),
    ("after_sigint_each_core_is_as_it_was_found", |guest| {
        ends(guest, "INT")
    }),
    (
        "after_kill_9_the_watchdog_puts_each_core_back_though_nobody_asks",
        killed,
    ),
    (
        "after_kill_9_of_the_watchdog_too_the_stop_hook_puts_each_core_back",
        abandoned,
    ),
    (
        "after_kill_9_the_next_governor_puts_each_core_back_at_its_end",
        started_again,
    ),
    ("clamps_are_put_back_too", clamps),
    (
        "a_limit_that_another_program_has_set_meanwhile_stays",
        others_limit,
    ),
];

/// Shares, for the cores are found with limits of their own.
const CONFIGURATION: &str = "policy: { three_state: { idle: 0 %, hot: 50 %, over: 100 % } }";

/// Four cores that no two are alike of.
const FOUND: &str = "
    cd /sys/devices/system/cpu
    echo 1200000 > cpu0/cpufreq/scaling_min_freq
    echo 2400000 > cpu0/cpufreq/scaling_max_freq
    echo performance > cpu1/cpufreq/scaling_governor
    echo userspace > cpu2/cpufreq/scaling_governor
    echo 1800000 > cpu2/cpufreq/scaling_setspeed
    echo powersave > cpu3/cpufreq/scaling_governor
    echo 2200000 > cpu3/cpufreq/scaling_max_freq";

/// What the governor must leave as it was: not the frequency of the moment, that the kernel's own
/// governors choose.
type Settings = (String, Option<u32>, u32, u32);

fn settings(guest: &mut Guest) -> Result<BTreeMap<usize, Settings>> {
    let cores = guest.cores()?.into_iter();
    let of = |(number, core): (_, weir_guest::Core)| {
        (
            number,
            (core.governor, core.set_khz, core.min_khz, core.max_khz),
        )
    };
    Ok(cores.map(of).collect())
}

/// The lowest of each core's limits, for none runs anything hot: from inside and from outside.
fn governed(guest: &mut Guest) -> Result<()> {
    let lowest = [1_200_000, 1_000_000, 1_000_000, 1_000_000];
    hot::wait_for_khz(guest, 2, 1_000_000)?;
    for (number, core) in guest.cores()? {
        assert_eq!(core.governor, "userspace", "core {number}");
        assert_eq!(core.set_khz, Some(lowest[number]), "core {number}");
    }
    assert_eq!(guest.registers_khz()?, lowest);
    Ok(())
}

fn ends(guest: &mut Guest, signal: &str) -> Result<()> {
    guest.sh(FOUND)?;
    let found = settings(guest)?;
    governor::start(guest, CONFIGURATION)?;
    governed(guest)?;
    governor::stop(guest, signal)?;
    assert_eq!(settings(guest)?, found);
    assert_eq!(
        guest.registers_khz()?[1..],
        [2_600_000, 1_800_000, 1_000_000]
    );
    Ok(())
}

fn killed(guest: &mut Guest) -> Result<()> {
    guest.sh(FOUND)?;
    let found = settings(guest)?;
    governor::start(guest, CONFIGURATION)?;
    governed(guest)?;
    governor::kill(guest)?;
    assert_eq!(settings(guest)?, found);
    assert_eq!(
        guest.registers_khz()?[1..],
        [2_600_000, 1_800_000, 1_000_000]
    );
    Ok(())
}

fn abandoned(guest: &mut Guest) -> Result<()> {
    guest.sh(FOUND)?;
    let found = settings(guest)?;
    governor::start(guest, CONFIGURATION)?;
    governed(guest)?;
    governor::abandon(guest)?;
    governed(guest)?;
    guest.sh("weir-governor restore")?;
    assert_eq!(settings(guest)?, found);
    // Once more changes nothing: it is over.
    guest.sh("echo ondemand > /sys/devices/system/cpu/cpu1/cpufreq/scaling_governor; weir-governor restore")?;
    assert_eq!(guest.cores()?[&1].governor, "ondemand");
    Ok(())
}

fn started_again(guest: &mut Guest) -> Result<()> {
    guest.sh(FOUND)?;
    let found = settings(guest)?;
    for _ in 0..2 {
        governor::start(guest, CONFIGURATION)?;
        governor::abandon(guest)?;
    }
    governor::start(guest, CONFIGURATION)?;
    governed(guest)?;
    governor::stop(guest, "TERM")?;
    assert_eq!(settings(guest)?, found);
    Ok(())
}

fn clamps(guest: &mut Guest) -> Result<()> {
    guest.sh(FOUND)?;
    guest.sh("echo performance > /sys/devices/system/cpu/cpu2/cpufreq/scaling_governor; rmmod cpufreq_userspace")?;
    let found = settings(guest)?;
    governor::start(guest, CONFIGURATION)?;
    hot::wait_for_khz(guest, 1, 1_000_000)?;
    assert_eq!(
        guest.registers_khz()?,
        [1_200_000, 1_000_000, 1_000_000, 1_000_000]
    );
    for (number, core) in guest.cores()? {
        assert_eq!(core.governor, found[&number].0, "core {number}");
        assert_eq!(core.min_khz, core.max_khz, "core {number}");
    }
    governor::stop(guest, "TERM")?;
    assert_eq!(settings(guest)?, found);
    governor::start(guest, CONFIGURATION)?;
    governor::kill(guest)?;
    assert_eq!(settings(guest)?, found);
    governor::start(guest, CONFIGURATION)?;
    governor::abandon(guest)?;
    assert_ne!(settings(guest)?, found);
    guest.sh("weir-governor restore")?;
    assert_eq!(settings(guest)?, found);
    Ok(())
}

fn others_limit(guest: &mut Guest) -> Result<()> {
    guest.sh("rmmod cpufreq_userspace")?;
    governor::start(guest, CONFIGURATION)?;
    hot::wait_for_khz(guest, 1, 1_000_000)?;
    guest.sh("echo 1600000 > /sys/devices/system/cpu/cpu1/cpufreq/scaling_max_freq")?;
    guest.wait_until("grep -q 'another program sets this core' /run/governor.log")?;
    governor::stop(guest, "TERM")?;
    for (number, core) in guest.cores()? {
        let highest = if number == 1 { 1_600_000 } else { 2_600_000 };
        assert_eq!(
            (core.min_khz, core.max_khz),
            (1_000_000, highest),
            "core {number}"
        );
    }
    Ok(())
}
