// SPDX-License-Identifier: Apache-2.0
//! Memory and disk of jobs under `parties`, as the kernel's files show them, and as they are found again.

use anyhow::Result;
use weir_guest::Guest;

use crate::group::{self, MOUNT};
use crate::layout::{self, CALM, SERVICE, SERVICE_CORES};
use crate::stage::Scenario;
use crate::{governor, page, work};

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "a_service_that_gets_slow_takes_memory_and_disk_of_jobs_and_after_kill_9_and_sigterm_they_are_as_found",
    takes,
)];

/// The latency is what a page says.
const CONFIGURATION: &str = "
tick: 100ms
service: { cgroup: system.slice/memcached.service }
core_policy:
  parties:
    { least: 0, elastic: 1, batch: 2-3, target: 5ms, settle: 500ms, rest: 500ms, patience: 1s,
      memory_steps: 2, memory_least: 64MiB, memory_most: 128MiB, disk_steps: 2 }
tail: { source: prometheus, url: 'http://127.0.0.1:9901/metrics', metric: took, window: 1s, every: 100ms }
batch: { cgroup: weir, logs: /var/log/weir, user: 0 }
jobs:
  - { name: backup, queue: short, cgroup: machine.slice/backup }
  - { name: freqmine, queue: long, threads: 2, command: [/bin/weir-guest-work, /run/work/freqmine, '{threads}'] }";

const OWN_MEMORY: &str = "weir/freqmine/memory.high";
const OWN_DISK: &str = "weir/freqmine/io.weight";
const MEMORY: &str = "machine.slice/backup/memory.high";
const DISK: &str = "machine.slice/backup/io.weight";
const LEAST: &str = "67108864";
const MOST: &str = "134217728";
/// Of somebody else's cgroup.
const FOUND: &str = "100663296";

fn takes(guest: &mut Guest) -> Result<()> {
    group::make(guest, "machine.slice/backup")?;
    guest.sh(&format!(
        "cd {MOUNT}; mkdir -p {SERVICE}
         echo +memory > cgroup.subtree_control; echo +memory > machine.slice/cgroup.subtree_control
         echo {FOUND} > {MEMORY}"
    ))?;
    for job in ["backup", "freqmine"] {
        work::order(guest, job, "0.2")?;
    }
    work::start(guest, "backup", 1, "machine.slice/backup")?;
    layout::serve(guest, CALM)?;

    // Nobody tells of its latency.
    governor::start(guest, CONFIGURATION)?;
    let all = [
        (SERVICE_CORES, "0-1"),
        (OWN_MEMORY, LEAST),
        (OWN_DISK, "default 1"),
        (MEMORY, LEAST),
        (DISK, "default 1"),
    ];
    group::wait_for(guest, &all)?;
    governor::kill(guest)?;
    are_as_found(guest)?;

    governor::start(guest, CONFIGURATION)?;
    group::wait_for(guest, &all)?;
    // It has no requests.
    page::serve(guest, "metrics")?;
    let none = [
        (SERVICE_CORES, "0"),
        (OWN_MEMORY, MOST),
        (OWN_DISK, "default 100"),
        (MEMORY, MOST),
        (DISK, "default 100"),
    ];
    group::wait_for(guest, &none)?;
    page::slow_requests(guest, "metrics", 10)?;
    group::wait_for(guest, &all)?;
    governor::stop(guest, "TERM")?;
    are_as_found(guest)
}

fn are_as_found(guest: &mut Guest) -> Result<()> {
    group::says(guest, OWN_MEMORY, "max")?;
    group::says(guest, OWN_DISK, "default 100")?;
    group::says(guest, MEMORY, FOUND)?;
    group::says(guest, DISK, "default 100")?;
    group::wait_for_use(guest, "machine.slice/backup")?;
    group::wait_for_use(guest, "weir/freqmine")
}
