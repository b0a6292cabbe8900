// SPDX-License-Identifier: Apache-2.0
//! Cores and frequencies under `hipster_co`, as the kernel's files show them.

use anyhow::Result;
use weir_guest::Guest;

use crate::group::{self, MOUNT};
use crate::layout::{self, CALM, SERVICE, SERVICE_CORES};
use crate::mesh::wait_for_khz;
use crate::stage::Scenario;
use crate::{governor, page, work};

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "a_quiet_service_has_a_slow_core_its_jobs_fast_ones_and_a_slow_service_has_all_at_once_and_after_sigterm_it_is_as_found",
    takes_both,
)];

/// The latency is what a page says.
const CONFIGURATION: &str = "
tick: 100ms
service: { cgroup: system.slice/memcached.service }
policy: { powersave: {} }
core_policy:
  hipster_co:
    { least: 0, elastic: 1, batch: 2-3, target: 5ms, interval: 500ms, patience: 1s, frequency_steps: 1 }
tail: { source: prometheus, url: 'http://127.0.0.1:9901/metrics', metric: took, window: 1s, every: 100ms }
batch: { cgroup: weir, logs: /var/log/weir, user: 0 }
jobs:
  - { name: dedup, queue: short, command: [/bin/weir-guest-work, /run/work/dedup, '{threads}'] }
  - { name: freqmine, queue: long, threads: 2, command: [/bin/weir-guest-work, /run/work/freqmine, '{threads}'] }";

const SLOW: u32 = 1_000_000;
const FAST: u32 = 2_600_000;

fn takes_both(guest: &mut Guest) -> Result<()> {
    group::make(guest, SERVICE)?;
    guest.sh(&format!("echo 0-2 > {MOUNT}/{SERVICE_CORES}"))?;
    for job in ["dedup", "freqmine"] {
        work::order(guest, job, "0.2")?;
    }
    layout::serve(guest, CALM)?;
    // It has no requests.
    page::serve(guest, "metrics")?;
    governor::start(guest, CONFIGURATION)?;
    let jobs = ("weir/freqmine/cpuset.cpus", "2-3");
    let small = ("weir/dedup/cpuset.cpus", "1");
    group::wait_for(guest, &[(SERVICE_CORES, "0"), small, jobs])?;
    wait_for_khz(guest, [SLOW, FAST, FAST, FAST])?;

    page::slow_requests(guest, "metrics", 10)?;
    group::wait_for(guest, &[(SERVICE_CORES, "0-1"), jobs])?;
    group::wait_until_frozen(guest, "weir/dedup")?;
    wait_for_khz(guest, [FAST; 4])?;

    governor::stop(guest, "TERM")?;
    group::says(guest, SERVICE_CORES, "0-2")?;
    group::wait_for_use(guest, "weir/dedup")?;
    group::wait_for_use(guest, "weir/freqmine")
}
