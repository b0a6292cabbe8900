// SPDX-License-Identifier: Apache-2.0
//! How the workload is sent in a round.

use std::path::Path;
use std::time::Duration;

use crate::bench::inference::way::Way;
use crate::bench::inference::workload::Workload;

/// More than the slowest answer takes where hosts keep up.
pub(super) const DEADLINE: Duration = Duration::from_secs(60);

#[derive(Clone)]
pub(super) struct Sending<'a> {
    /// As weir-replay reads it.
    pub(super) file: &'a Path,
    /// In the file.
    pub(super) requests: usize,
    /// From the first to the last, as the file has it.
    pub(super) lasts: Duration,
    /// All at once.
    pub(super) ways: &'a [Way],
    /// Offsets are divided by this.
    pub(super) speed: f64,
    /// What has no answer so long after it was due is given up and counted.
    pub(super) deadline: Duration,
    /// With more that have no answer in a hundred, something is broken. None where that is what is asked.
    pub(super) most_failed_percent: Option<usize>,
    /// Of a request, at most: what is refused or breaks is tried again.
    pub(super) attempts: u32,
    /// Whom sidecars ask is killed (SIGKILL) when half of the requests have come, and not started again.
    pub(super) kills: bool,
}

impl<'a> Sending<'a> {
    /// All of it, as fast as it is.
    pub(super) fn of(workload: &'a Workload, ways: &'a [Way]) -> Self {
        Self {
            file: &workload.file,
            requests: workload.facts.requests,
            lasts: Duration::from_secs_f64(workload.facts.duration_s),
            ways,
            speed: 1.0,
            deadline: DEADLINE,
            most_failed_percent: Some(1),
            attempts: 10,
            kills: false,
        }
    }
}
