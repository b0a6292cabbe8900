// SPDX-License-Identifier: Apache-2.0
//! A real cpufreq, driven and looked at from inside and from outside, in one guest for all tests.
//!
//! Where no guest can be had (`WEIR_GUEST_DIR` is not set) the tests are reported as ignored.

#[path = "cpufreq/check.rs"]
mod check;
#[path = "inside/dice.rs"]
mod dice;
#[path = "cpufreq/events.rs"]
mod events;
#[path = "inside/governor.rs"]
mod governor;
#[path = "cpufreq/hardware.rs"]
mod hardware;
#[path = "cpufreq/hot.rs"]
mod hot;
#[path = "cpufreq/kills.rs"]
mod kills;
#[path = "cpufreq/policies.rs"]
mod policies;
#[path = "cpufreq/restore.rs"]
mod restore;
#[path = "inside/stage.rs"]
mod stage;
#[path = "cpufreq/trouble.rs"]
mod trouble;

use std::process::ExitCode;

use crate::stage::Stage;

const RESET: &str = "
    while killall -9 weir-governor weir-events-play yes 2>/dev/null; do usleep 1000; done
    rm -rf /run/weir
    mount -o remount,rw /sys
    umount /sys/devices/system/cpu/cpufreq/policy1/scaling_setspeed 2>/dev/null || true
    umount /sys/devices/system/cpu/cpufreq/policy1 2>/dev/null || true
    [ -f /sys/fs/cgroup/cgroup.procs ] || mount -t cgroup2 cgroup2 /sys/fs/cgroup
    [ -d /sys/module/acpi_cpufreq ] || insmod /lib/drivers/acpi-cpufreq.ko
    [ -d /sys/module/cpufreq_userspace ] || insmod /lib/drivers/cpufreq_userspace.ko
    cd /sys/devices/system/cpu
    for cpu in 1 2 3; do echo 1 > cpu$cpu/online; done
    for policy in cpu[0-9]/cpufreq; do
      echo schedutil > $policy/scaling_governor
      read khz < $policy/cpuinfo_max_freq && echo $khz > $policy/scaling_max_freq
      read khz < $policy/cpuinfo_min_freq && echo $khz > $policy/scaling_min_freq
    done";

fn main() -> ExitCode {
    let stage = Stage {
        programs: &["weir-governor", "examples/weir-events-play"],
        brings: &[],
        reset: RESET,
        about: "a real cpufreq",
        nightly: &[
            "after_sigint_each_core_is_as_it_was_found",
            "after_kill_9_of_the_watchdog_too_the_stop_hook_puts_each_core_back",
            "iso_latency_gives_power_back_while_calls_are_quick_and_takes_it_when_nothing_is_known",
            "slow_to_fast_is_fast_at_once_until_it_has_learned_that_calls_are_quick",
            "octopus_man_and_hipster_come_down_while_calls_are_quick_and_are_at_the_top_when_nothing_is_known",
            "rubik_is_fast_until_it_knows_what_calls_need_and_then_no_faster_than_that",
        ],
    };
    stage.run(&[
        hardware::SCENARIOS,
        restore::SCENARIOS,
        policies::SCENARIOS,
        events::SCENARIOS,
        trouble::SCENARIOS,
        kills::SCENARIOS,
        check::SCENARIOS,
    ])
}
