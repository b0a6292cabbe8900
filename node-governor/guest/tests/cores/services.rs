// SPDX-License-Identifier: Apache-2.0
//! Two services under `parties`, each with a page that says how slow it is, and jobs on what both leave.

use anyhow::Result;
use weir_guest::Guest;

use crate::group::{self, MOUNT};
use crate::layout::{self, CALM, SERVICE, SERVICE_CORES};
use crate::stage::Scenario;
use crate::{governor, page, work};

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "of_two_services_the_one_that_gets_slow_has_cores_of_jobs_and_after_kill_9_and_sigterm_both_are_as_found",
    both,
)];

const OTHER: &str = "system.slice/nginx.service";
const OTHER_CORES: &str = "system.slice/nginx.service/cpuset.cpus";
/// As they are found.
const FOUND: &str = "0-3";

const CONFIGURATION: &str = "
tick: 100ms
service: { cgroup: system.slice/memcached.service }
core_policy:
  parties:
    { least: 0, elastic: 1-2, batch: none, target: 5ms, settle: 500ms, rest: 500ms, patience: 1s,
      others: [ { name: nginx, service: { cgroup: system.slice/nginx.service }, least: 3, target: 5ms,
        tail: { source: prometheus, url: 'http://127.0.0.1:9901/nginx', metric: took, window: 1s, every: 100ms } } ] }
tail: { source: prometheus, url: 'http://127.0.0.1:9901/memcached', metric: took, window: 1s, every: 100ms }
batch: { cgroup: weir, logs: /var/log/weir, user: 0 }
jobs:
  - { name: freqmine, queue: long, threads: 2, command: [/bin/weir-guest-work, /run/work/freqmine, '{threads}'] }";

fn both(guest: &mut Guest) -> Result<()> {
    for service in [SERVICE, OTHER] {
        group::make(guest, service)?;
        guest.sh(&format!("echo {FOUND} > {MOUNT}/{service}/cpuset.cpus"))?;
    }
    for work in ["freqmine", "nginx"] {
        work::order(guest, work, "0.2")?;
    }
    layout::serve(guest, CALM)?;
    work::start(guest, "nginx", 2, OTHER)?;

    // Nobody tells of their latencies.
    governor::start(guest, CONFIGURATION)?;
    group::wait_for(guest, &[(SERVICE_CORES, "0-1"), (OTHER_CORES, "2-3")])?;
    governor::kill(guest)?;
    are_as_found(guest)?;

    governor::start(guest, CONFIGURATION)?;
    let job = "weir/freqmine/cpuset.cpus";
    // They have no requests.
    page::serve(guest, "memcached")?;
    page::serve(guest, "nginx")?;
    group::wait_for(
        guest,
        &[(SERVICE_CORES, "0"), (OTHER_CORES, "3"), (job, "1-2")],
    )?;
    page::slow_requests(guest, "nginx", 10)?;
    group::wait_for(guest, &[(SERVICE_CORES, "0"), (OTHER_CORES, "1-3")])?;
    group::wait_until_frozen(guest, "weir/freqmine")?;
    // The one that has become quiet gives to the other.
    page::slow_requests(guest, "nginx", 0)?;
    page::slow_requests(guest, "memcached", 10)?;
    group::wait_for(guest, &[(SERVICE_CORES, "0-2"), (OTHER_CORES, "3")])?;
    governor::stop(guest, "TERM")?;
    are_as_found(guest)?;
    group::wait_for_use(guest, "weir/freqmine")
}

fn are_as_found(guest: &mut Guest) -> Result<()> {
    group::says(guest, SERVICE_CORES, FOUND)?;
    group::says(guest, OTHER_CORES, FOUND)
}
