// SPDX-License-Identifier: Apache-2.0
//! How admission levels move.

use std::time::Duration;

use weir_policy::overload::breaker;
use weir_policy::{dagor, steady};

/// How admission levels move.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dagor {
    /// By which rule.
    pub control: Control,
    /// Of [`Control::Steady`].
    pub steady: steady::Params,
    /// Of [`Control::Steady`]: a host whose queue takes so much longer than the usual host's passes on what
    /// it cannot do.
    pub behind: Duration,
    /// Of the other two.
    pub params: dagor::Params,
    /// The level moves after this time ...
    pub window: Duration,
    /// ... or this many requests, whichever is first.
    pub window_requests: u64,
    /// Where no queuing delay is known or counts, a host with more queued jobs than this is overloaded.
    pub queued_jobs: u32,
}

/// By which rule admission levels move.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Control {
    /// One level for the cluster, from how long its queues will take ([`steady`]); a host that is far behind
    /// the others passes on what it cannot do.
    #[default]
    Steady,
    /// A level for each host, from its queuing delay (Zhou et al., SoCC 2018).
    Paper,
    /// The same from its queued jobs (document 001, section 9.1.3).
    StalledJobs,
}

impl Default for Dagor {
    fn default() -> Self {
        Self {
            control: Control::default(),
            steady: steady::Params::default(),
            behind: steady::Params::default().high,
            params: dagor::Params::default(),
            // The paper's window (section 4.1).
            window: Duration::from_secs(1),
            window_requests: 2000,
            // As document 001 does (section 9.1.3): DAGOR on stalled jobs has the breaker's threshold.
            queued_jobs: breaker::QUEUED_JOBS,
        }
    }
}
