// SPDX-License-Identifier: Apache-2.0
//! How large the demonstration is.

use std::time::Duration;

/// The extract of the trace, and the minutes it holds. Its load is even, so that what differs
/// between the ways is their doing.
pub(super) const TRACE: &str = "azfunc2019_steady_5min";
pub(super) const FROM_MINUTE: u64 = 100;
pub(super) const MINUTES: u64 = 5;
/// The source begins at 08:00.
pub(super) const FROM_CLOCK: &str = "09:40";

/// Four for each core: the default of 100 is for hosts with far more cores, and would let a job
/// wait for seconds here before the next host is taken.
pub(super) const BREAKER_QUEUED_JOBS: u32 = 16;

/// Some eight mean run times: the default of 20 ms is for hosts on which hardly any job waits.
pub(super) const DAGOR_THRESHOLD: &str = "500ms";

/// Share of the admitted requests that one window of a second sheds or adds. The paper's 5 % and 1 % are
/// for services that run for hours: here a host that got twice its share would shed for half of the time.
pub(super) const DAGOR_STEP: f64 = 0.3;

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
