// SPDX-License-Identifier: Apache-2.0
//! A job that somebody else has started in a cgroup of his own, as a container.

use anyhow::Result;
use weir_guest::Guest;

use crate::group::{self, MOUNT};
use crate::layout::{self, ALL, CALM, SERVICE_CORES};
use crate::stage::Scenario;
use crate::{governor, work};

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "a_cgroup_of_somebody_elses_is_frozen_and_moved_and_after_kill_9_and_sigterm_as_it_was_found",
    container,
)];

const JOBS: &str = "
  - { name: backup, queue: short, cgroup: machine.slice/backup }
  - { name: freqmine, queue: long, threads: 2, command: [/bin/weir-guest-work, /run/work/freqmine, '{threads}'] }";

const CORES: &str = "machine.slice/backup/cpuset.cpus";
const FREEZE: &str = "machine.slice/backup/cgroup.freeze";
const FOUND: &str = "1-3";

fn container(guest: &mut Guest) -> Result<()> {
    group::make(guest, "machine.slice/backup")?;
    guest.sh(&format!("echo {FOUND} > {MOUNT}/{CORES}"))?;
    work::order(guest, "backup", "0.2")?;
    work::start(guest, "backup", 2, "machine.slice/backup")?;
    work::order(guest, "freqmine", "0.2")?;
    guest.sh(&format!("mkdir -p {MOUNT}/{}", layout::SERVICE))?;
    layout::serve(guest, CALM)?;
    layout::govern_with(guest, JOBS)?;
    let beside = [(SERVICE_CORES, "0"), (CORES, "1"), (FREEZE, "0")];
    group::wait_for(guest, &beside)?;
    group::wait_for_places(guest, "machine.slice/backup", "1")?;

    layout::load(guest, ALL)?;
    group::wait_for(guest, &[(SERVICE_CORES, "0-1"), (FREEZE, "1")])?;
    governor::kill(guest)?;
    is_as_found(guest)?;

    layout::govern_with(guest, JOBS)?;
    layout::load(guest, CALM)?;
    group::wait_for(guest, &beside)?;
    governor::stop(guest, "TERM")?;
    is_as_found(guest)?;

    // It is a job until it has no process.
    layout::govern_with(guest, JOBS)?;
    group::wait_for(guest, &beside)?;
    work::order(guest, "backup", "end 0")?;
    layout::wait_until_told(guest, |said| said["jobs"][0]["state"] == "finished")?;
    Ok(())
}

fn is_as_found(guest: &mut Guest) -> Result<()> {
    group::says(guest, CORES, FOUND)?;
    group::says(guest, FREEZE, "0")?;
    group::wait_for_use(guest, "machine.slice/backup")
}
