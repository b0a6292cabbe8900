// SPDX-License-Identifier: Apache-2.0
//! What a machine, another program or a person can do to a governor.

use anyhow::Result;
use weir_guest::Guest;

use crate::stage::Scenario;
use crate::{governor, hot};

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "a_core_that_goes_offline_and_comes_back_is_governed_again",
        offline,
    ),
    (
        "another_program_that_writes_is_noticed_and_given_way_to",
        another_program,
    ),
    (
        "a_kernel_without_cpufreq_is_refused_by_the_missing_folder",
        no_cpufreq,
    ),
    (
        "a_driver_that_is_asked_for_and_not_offered_is_refused",
        no_userspace,
    ),
    (
        "kernel_files_that_cannot_be_written_are_refused_by_name",
        read_only,
    ),
    (
        "without_the_right_to_write_the_refused_file_is_named",
        no_right,
    ),
    (
        "a_core_that_takes_no_speed_leaves_the_others_governed",
        refusing_core,
    ),
    (
        "a_core_without_files_leaves_the_others_governed",
        missing_files,
    ),
    (
        "a_frequency_that_no_core_has_is_refused_before_anything_is_changed",
        off_the_table,
    ),
    (
        "a_second_governor_is_refused_by_the_first_ones_process",
        second,
    ),
];

const CONFIGURATION: &str = "policy: { three_state: { threshold: 100ms } }";

const CPU: &str = "/sys/devices/system/cpu";

fn offline(guest: &mut Guest) -> Result<()> {
    governor::start(guest, CONFIGURATION)?;
    hot::forever(guest, 2, 0)?;
    hot::wait_for_khz(guest, 2, 2_600_000)?;
    guest.sh(&format!("echo 0 > {CPU}/cpu2/online"))?;
    // Its thread has been moved by the kernel: its core of now is a fast one, and no other is.
    hot::kill(guest)?;
    hot::forever(guest, 3, 0)?;
    hot::wait_for_khz(guest, 3, 2_600_000)?;
    hot::wait_for_khz(guest, 1, 1_000_000)?;
    guest.wait_until("grep -q 'no core of it is online' /run/governor.log")?;
    guest.sh(&format!("echo 1 > {CPU}/cpu2/online"))?;
    guest.wait_until("grep -q 'cores are back' /run/governor.log")?;
    hot::forever(guest, 2, 0)?;
    hot::wait_for_khz(guest, 2, 2_600_000)?;
    hot::kill(guest)?;
    for core in 0..4 {
        hot::wait_for_khz(guest, core, 1_000_000)?;
    }
    assert_eq!(guest.registers_khz()?, [1_000_000; 4]);
    governor::stop(guest, "TERM")?;
    for (number, core) in guest.cores()? {
        assert_eq!(core.governor, "schedutil", "core {number}");
    }
    Ok(())
}

fn another_program(guest: &mut Guest) -> Result<()> {
    governor::start(guest, CONFIGURATION)?;
    hot::wait_for_khz(guest, 1, 1_000_000)?;
    let noticed = |count| {
        format!("[ $(grep -c 'another program sets this core' /run/governor.log) = {count} ]")
    };
    guest.sh(&format!(
        "echo 2200000 > {CPU}/cpu1/cpufreq/scaling_setspeed"
    ))?;
    guest.wait_until(&noticed(1))?;
    hot::wait_for_khz(guest, 1, 1_000_000)?;
    // It insists, by another way.
    guest.sh(&format!(
        "echo performance > {CPU}/cpu1/cpufreq/scaling_governor"
    ))?;
    guest.wait_until(&noticed(2))?;
    guest.wait_until(&format!(
        "read governor < {CPU}/cpu1/cpufreq/scaling_governor && [ $governor = userspace ]"
    ))?;
    hot::wait_for_khz(guest, 1, 1_000_000)?;
    // Nobody has written to the others.
    assert_eq!(guest.registers_khz()?, [1_000_000; 4]);
    let log = governor::log(guest)?;
    assert!(log.contains("policy1") && !log.contains("policy2"), "{log}");
    Ok(())
}

/// Starts one that must refuse with this code; returns what it says.
fn refused(guest: &mut Guest, configuration: &str, code: u8) -> Result<String> {
    let before = guest.cores()?;
    let error = governor::start(guest, configuration).unwrap_err();
    let log = governor::log(guest)?;
    assert!(
        error.to_string().contains("ended instead"),
        "{error:#}\n{log}"
    );
    let ended = guest.sh("cat /run/governor.code")?;
    assert_eq!(ended.trim(), code.to_string(), "{log}");
    let (after, found) = (
        guest.cores()?,
        |cores: &std::collections::BTreeMap<_, weir_guest::Core>| {
            let of = |core: &weir_guest::Core| (core.governor.clone(), core.min_khz, core.max_khz);
            cores.values().map(of).collect::<Vec<_>>()
        },
    );
    assert_eq!(found(&after), found(&before), "{log}");
    Ok(log)
}

fn no_cpufreq(guest: &mut Guest) -> Result<()> {
    guest.sh("rmmod acpi-cpufreq")?;
    let log = refused(guest, CONFIGURATION, 1)?;
    assert!(log.contains("sys/devices/system/cpu/cpufreq"), "{log}");
    assert!(log.contains("weir-governor check"), "{log}");
    Ok(())
}

fn no_userspace(guest: &mut Guest) -> Result<()> {
    guest.sh("rmmod cpufreq_userspace")?;
    let log = refused(guest, &format!("driver: userspace\n{CONFIGURATION}"), 1)?;
    assert!(
        log.contains("policy0") && log.contains("scaling_governor"),
        "{log}"
    );
    Ok(())
}

fn read_only(guest: &mut Guest) -> Result<()> {
    guest.sh("mount -o remount,ro /sys")?;
    let log = refused(guest, CONFIGURATION, 1)?;
    assert!(
        log.contains("scaling_governor") && log.contains("Read-only"),
        "{log}"
    );
    Ok(())
}

fn no_right(guest: &mut Guest) -> Result<()> {
    guest.sh(&format!(
        "echo nobody:x:65534:65534::/:/bin/sh > /etc/passwd
        mkdir -p /run/theirs && chown 65534 /run/theirs
        cat > /etc/theirs.yaml <<'YAML'
state_directory: /run/theirs/state
events: {{ path: /run/theirs/hot.events }}
{CONFIGURATION}
YAML"
    ))?;
    let answer = guest.run(
        "start-stop-daemon -S -c 65534:65534 -x /bin/weir-governor -- run --config /etc/theirs.yaml",
    )?;
    assert_eq!(answer.code, 1, "{}", answer.output);
    assert!(
        answer
            .output
            .contains("scaling_governor: Permission denied"),
        "{}",
        answer.output
    );
    Ok(())
}

/// Governs while core 1 cannot be; everything else is as ever.
fn without_core_1(guest: &mut Guest) -> Result<()> {
    governor::start(guest, CONFIGURATION)?;
    for core in [0, 2, 3] {
        hot::wait_for_khz(guest, core, 1_000_000)?;
    }
    hot::forever(guest, 1, 0)?;
    hot::forever(guest, 3, 0)?;
    hot::wait_for_khz(guest, 3, 2_600_000)?;
    assert_eq!(guest.registers_khz()?[3], 2_600_000);
    Ok(())
}

fn refusing_core(guest: &mut Guest) -> Result<()> {
    let file = format!("{CPU}/cpufreq/policy1/scaling_setspeed");
    guest.sh(&format!("mount --bind /dev/full {file}"))?;
    without_core_1(guest)?;
    let log = governor::log(guest)?;
    assert!(
        log.contains("not written") && log.contains("policy1"),
        "{log}"
    );
    governor::stop(guest, "TERM")?;
    guest.sh(&format!("umount {file}"))?;
    for (number, core) in guest.cores()? {
        assert_eq!(core.governor, "schedutil", "core {number}");
    }
    Ok(())
}

fn missing_files(guest: &mut Guest) -> Result<()> {
    let folder = format!("{CPU}/cpufreq/policy1");
    guest.sh(&format!(
        "mkdir -p /run/empty && mount --bind /run/empty {folder}"
    ))?;
    without_core_1(guest)?;
    governor::stop(guest, "TERM")?;
    guest.sh(&format!("umount {folder}"))?;
    for (number, core) in guest.cores()? {
        assert_eq!(core.governor, "schedutil", "core {number}");
    }
    Ok(())
}

fn off_the_table(guest: &mut Guest) -> Result<()> {
    let configuration = "policy:\n  three_state:\n    hot: 2.1 GHz";
    let log = refused(guest, configuration, 64)?;
    assert!(
        log.contains("weir-governor.yaml:3") && log.contains("policy.three_state.hot"),
        "{log}"
    );
    assert!(
        log.contains("cpu0 has no 2.1 GHz") && log.contains("1.8 GHz, 2 GHz"),
        "{log}"
    );
    Ok(())
}

fn second(guest: &mut Guest) -> Result<()> {
    governor::start(guest, CONFIGURATION)?;
    let first = guest.sh("cat /run/governor.pid")?;
    let answer = guest.run("weir-governor restore")?;
    assert_ne!(answer.code, 0);
    assert!(
        answer.output.contains(&format!("process {}", first.trim())),
        "{}",
        answer.output
    );
    // It goes on.
    hot::forever(guest, 0, 0)?;
    hot::wait_for_khz(guest, 0, 2_600_000)
}
