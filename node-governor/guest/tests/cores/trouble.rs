// SPDX-License-Identifier: Apache-2.0
//! What goes away under the governor.

use anyhow::Result;
use weir_guest::Guest;

use crate::governor;
use crate::group::{self, MOUNT};
use crate::layout::{self, ALL, CALM, SERVICE, SERVICE_CORES};
use crate::stage::Scenario;

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "a_job_whose_cgroup_is_removed_is_told_of_and_the_next_one_follows",
        job_removed,
    ),
    (
        "a_service_that_is_started_anew_in_a_new_cgroup_gets_its_cores_again",
        service_anew,
    ),
    (
        "a_service_that_is_silent_keeps_its_cores_for_a_while_and_then_has_both_blocks",
        service_silent,
    ),
];

fn remove(guest: &mut Guest, path: &str) -> Result<()> {
    guest.sh(&format!(
        "echo 1 > {MOUNT}/{path}/cgroup.kill; until rmdir {MOUNT}/{path} 2> /dev/null; do usleep 10000; done"
    ))?;
    Ok(())
}

fn job_removed(guest: &mut Guest) -> Result<()> {
    layout::begin(guest, CALM)?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    remove(guest, "weir/dedup")?;
    layout::wait_for_small(guest, "canneal", "freqmine")?;
    let states = ["failed", "running", "running", "waiting"];
    let said = layout::wait_until_told(guest, |said| layout::are(said, states))?;
    assert!(said["jobs"][0]["trouble"].is_string(), "{said}");
    // Frozen or not, it is the same.
    layout::load(guest, ALL)?;
    layout::wait_for_large(guest, "canneal", "freqmine")?;
    remove(guest, "weir/canneal")?;
    layout::wait_until_told(guest, |said| {
        said["failed"] == 2 && said["jobs"][1]["state"] == "failed"
    })?;
    layout::load(guest, CALM)?;
    layout::wait_for_small(guest, "ferret", "freqmine")
}

/// The new service's cores, which the first did not have.
const FOUND: &str = "0-2";

fn service_anew(guest: &mut Guest) -> Result<()> {
    layout::begin(guest, CALM)?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    // Between two looks of the governor.
    guest.sh("read pid < /run/governor.pid; kill -STOP $pid")?;
    remove(guest, SERVICE)?;
    guest.sh(&format!(
        "mkdir {MOUNT}/{SERVICE}; echo {FOUND} > {MOUNT}/{SERVICE_CORES}
         read pid < /run/governor.pid; kill -CONT $pid"
    ))?;
    layout::serve(guest, CALM)?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    group::wait_for_places(guest, SERVICE, "0")?;
    layout::load(guest, ALL)?;
    layout::wait_for_large(guest, "dedup", "freqmine")?;
    group::wait_for_places(guest, SERVICE, "0-1")?;
    governor::stop(guest, "TERM")?;
    group::says(guest, SERVICE_CORES, FOUND)
}

fn service_silent(guest: &mut Guest) -> Result<()> {
    layout::begin(guest, CALM)?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    guest.sh(&format!("echo 1 > {MOUNT}/{SERVICE}/cgroup.kill"))?;
    layout::wait_for_large(guest, "dedup", "freqmine")?;
    let said = layout::shares(guest)?;
    assert_eq!(
        (&said["why"], &said["cpu"]),
        (&"safe".into(), &serde_json::Value::Null),
        "{said}"
    );
    let said = guest.sh("grep -o '\"service\":{[^}]*}' /var/log/weir/timeline.jsonl")?;
    let said: Vec<_> = said.lines().rev().collect();
    let at =
        |cores: &str, why: &str| format!("\"service\":{{\"cores\":\"{cores}\",\"why\":\"{why}\"}}");
    assert_eq!(said[0], at("0-1", "safe"), "{said:?}");
    assert!(
        said[1] == at("0", "held") || said[1] == at("0-1", "held"),
        "{said:?}"
    );
    // It is back, and heard again.
    layout::serve(guest, CALM)?;
    layout::wait_for_small(guest, "dedup", "freqmine")
}
