// SPDX-License-Identifier: Apache-2.0
//! The state machine and the queues.

use anyhow::Result;
use serde_json::Value;
use weir_guest::Guest;

use crate::layout::{self, ALL, BUSY, CALM, SERVICE, SERVICE_RUNS_ON};
use crate::stage::Scenario;
use crate::{governor, group, work};

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "above_60_percent_of_a_core_the_service_has_the_small_block_and_under_130_its_job_goes_on_there",
        follows_the_load,
    ),
    (
        "the_next_of_its_queue_follows_and_the_last_job_leaves_the_small_block_to_the_service",
        queues,
    ),
];

fn follows_the_load(guest: &mut Guest) -> Result<()> {
    layout::begin(guest, CALM)?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    group::wait_for_places(guest, SERVICE, "0")?;
    group::wait_for_places(guest, "weir/dedup", "1")?;
    group::wait_for_places(guest, "weir/freqmine", "2-3")?;
    let states = ["running", "waiting", "running", "waiting"];
    layout::wait_until_told(guest, |said| {
        said["cores"] == "0" && layout::are(said, states)
    })?;

    layout::load(guest, BUSY)?;
    layout::wait_for_large(guest, "dedup", "freqmine")?;
    layout::load(guest, ALL)?;
    group::wait_for_places(guest, SERVICE, "0-1")?;
    stands_still(guest)?;

    layout::load(guest, CALM)?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    group::wait_for_places(guest, SERVICE, "0")?;
    group::wait_for_use(guest, "weir/dedup")?;
    group::wait_for_places(guest, "weir/dedup", "1")?;
    // All the time frequencies were as their own policy says.
    assert_eq!(guest.registers_khz()?, [1_000_000; 4]);
    layout::finish(guest)
}

/// While the job of the small block is frozen that of the large one goes on.
fn stands_still(guest: &mut Guest) -> Result<()> {
    let states = ["paused", "waiting", "running", "waiting"];
    loop {
        let paused = |said: &Value| said["cores"] == "0-1" && layout::are(said, states);
        let before = layout::wait_until_told(guest, paused)?;
        group::wait_until_frozen(guest, "weir/dedup")?;
        let used = group::used_us(guest, "weir/dedup")?;
        group::wait_for_use(guest, "weir/freqmine")?;
        let now = group::used_us(guest, "weir/dedup")?;
        let after = layout::shares(guest)?;
        // On a machine that has no time for the guest the service may have had less than it wanted.
        if layout::are(&after, states) && after["moves"] == before["moves"] {
            assert_eq!(now, used, "{before} {after}");
            return Ok(());
        }
    }
}

fn queues(guest: &mut Guest) -> Result<()> {
    layout::begin(guest, CALM)?;
    layout::wait_for_small(guest, "dedup", "freqmine")?;
    // The short one has ended; no other is short.
    work::order(guest, "dedup", "end 0")?;
    layout::wait_for_small(guest, "canneal", "freqmine")?;
    group::wait_for_places(guest, "weir/canneal", "1")?;
    // One that fails does not stop the rest.
    work::order(guest, "freqmine", "end 3")?;
    layout::wait_for_small(guest, "canneal", "ferret")?;
    group::wait_for_places(guest, "weir/ferret", "2-3")?;
    let canneal = guest.sh("cat /sys/fs/cgroup/weir/canneal/cgroup.procs")?;

    // None waits: the large block takes the small one's job, and nothing needs core 1 any more.
    work::order(guest, "ferret", "end 0")?;
    layout::wait_for(guest, "0-1", &[("canneal", "2-3", false)])?;
    group::wait_for_places(guest, "weir/canneal", "2-3")?;
    group::wait_for_places(guest, SERVICE, "0-1")?;
    assert_eq!(
        guest.sh("cat /sys/fs/cgroup/weir/canneal/cgroup.procs")?,
        canneal
    );

    work::order(guest, "canneal", "end 0")?;
    let states = ["finished", "finished", "failed", "finished"];
    let said = layout::wait_until_told(guest, |said| layout::are(said, states))?;
    assert_eq!(said["jobs"][2]["code"], 3, "{said}");
    let has = ["cores", "why"].map(|field| said[field].as_str());
    assert_eq!(has, [Some("0-1"), Some("no_jobs")], "{said}");
    layout::each_has_run_once(guest)?;
    governor::stop(guest, "TERM")?;
    // It had no cores of its own.
    group::says(guest, SERVICE_RUNS_ON, "0-3")
}
