// SPDX-License-Identifier: Apache-2.0
//! Document 004's four cores: a service whose load is commanded step by step, and batch jobs of three queues, in a
//! guest whose kernel has cgroup v2 with cpuset and freeze. Everything is seen from outside of the governor, in
//! the kernel's own files; nothing is measured by a clock.
//!
//! Where no guest can be had (`WEIR_GUEST_DIR` is not set) the tests are reported as ignored.

#[path = "cores/blocks.rs"]
mod blocks;
#[path = "inside/dice.rs"]
mod dice;
#[path = "cores/ends.rs"]
mod ends;
#[path = "cores/foreign.rs"]
mod foreign;
#[path = "inside/governor.rs"]
mod governor;
#[path = "cores/group.rs"]
mod group;
#[path = "cores/hipster_co.rs"]
mod hipster_co;
#[path = "cores/kernel.rs"]
mod kernel;
#[path = "cores/layout.rs"]
mod layout;
#[path = "cores/limits.rs"]
mod limits;
#[path = "cores/mesh.rs"]
mod mesh;
#[path = "cores/network.rs"]
mod network;
#[path = "cores/page.rs"]
mod page;
#[path = "cores/services.rs"]
mod services;
#[path = "inside/stage.rs"]
mod stage;
#[path = "cores/trouble.rs"]
mod trouble;
#[path = "cores/work.rs"]
mod work;

use std::process::ExitCode;

use crate::stage::Stage;

const RESET: &str = "
    while killall -9 weir-governor weir-guest-work weir-control httpd nc 2>/dev/null; do usleep 1000; done
    [ ! -s /run/weir/network.json ] || /bin/tc qdisc del dev lo root || true
    rm -rf /run/weir /run/work /run/www /var/log/weir
    mkdir -p /run/work /var/log/weir
    cd /sys/fs/cgroup
    until groups=$(find . -mindepth 1 -depth -type d) && [ -z \"$groups\" ]; do
      rmdir $groups 2>/dev/null || usleep 1000
    done
    echo -cpuset -memory -io > cgroup.subtree_control
    cd /sys/devices/system/cpu
    for policy in cpu[0-9]/cpufreq; do echo schedutil > $policy/scaling_governor; done";

fn main() -> ExitCode {
    let stage = Stage {
        programs: &["weir-governor", "weir-control", "examples/weir-guest-work"],
        brings: &[("/usr/sbin/tc", network::SCENARIOS)],
        reset: RESET,
        about: "cgroup v2's cpuset",
        nightly: &[
            "after_sigterm_the_service_is_as_found_and_the_frozen_job_goes_on",
            "after_kill_9_of_the_watchdog_too_restore_thaws_the_frozen_job_and_puts_the_service_back",
        ],
    };
    stage.run(&[
        kernel::SCENARIOS,
        blocks::SCENARIOS,
        mesh::SCENARIOS,
        ends::SCENARIOS,
        foreign::SCENARIOS,
        limits::SCENARIOS,
        network::SCENARIOS,
        hipster_co::SCENARIOS,
        services::SCENARIOS,
        trouble::SCENARIOS,
    ])
}
