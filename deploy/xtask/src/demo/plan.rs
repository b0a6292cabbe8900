// SPDX-License-Identifier: Apache-2.0
//! How large the demonstration is.

use std::time::Duration;

/// The minutes that the trace's extract holds.
pub(super) const FROM_MINUTE: u64 = 60;
pub(super) const MINUTES: u64 = 5;

/// Starting the processes of a way and letting the last answers come, where hosts keep up.
pub(super) const AROUND: Duration = Duration::from_secs(6);

/// The same for every way.
pub(super) struct Plan {
    /// How long the workload lasts for each way.
    pub(super) replay: Duration,
    /// A caller that has no good answer by then gives up. As long as a way may go on after its
    /// last request was sent.
    pub(super) deadline: Duration,
    /// Share of the trace's calls. With all of them two real cores would be the bottleneck.
    pub(super) sample: f64,
    pub(super) hosts: usize,
    pub(super) cores: usize,
    /// The workload's run times over the time that the hosts' cores offer.
    pub(super) utilisation: f64,
    /// Each host's cache: holds a part of the data, so that where requests go decides what is
    /// found there.
    pub(super) cache_bytes: &'static str,
    /// Absent data comes with this bandwidth, and keeps a core busy meanwhile.
    pub(super) fetch_bytes_per_second: &'static str,
    /// Sidecars that share what they know through weir-control.
    pub(super) callers: usize,
}

impl Plan {
    pub(super) fn new(quick: bool) -> Self {
        let full = Self {
            replay: Duration::from_secs(50),
            deadline: Duration::from_secs(15),
            sample: 0.5,
            hosts: 6,
            cores: 4,
            utilisation: 0.85,
            cache_bytes: "4G",
            fetch_bytes_per_second: "5G",
            callers: 2,
        };
        if !quick {
            return full;
        }
        Self {
            replay: full.replay / 4,
            deadline: full.deadline / 2,
            // The same number of requests a second.
            sample: full.sample / 4.0,
            ..full
        }
    }

    /// So that the minutes of the trace fit.
    pub(super) fn speed_up(&self) -> f64 {
        MINUTES as f64 * 60.0 / self.replay.as_secs_f64()
    }
}
