// SPDX-License-Identifier: Apache-2.0
//! What is simulated, as data.

use std::time::Duration;

use weir_control::config::Dagor;
use weir_executor::{Settings, Timing};
use weir_policy::Policy;
use weir_replay::backoff::Backoff;

/// One fleet and its callers.
#[derive(Debug, Clone)]
pub struct Scenario {
    /// How many hosts.
    pub hosts: usize,
    /// Each host's cores, cache and order.
    pub host: Settings,
    /// How long fetches take.
    pub timing: Timing,
    /// Sidecars that share only what tables and reports share.
    pub callers: usize,
    /// How hosts are chosen.
    pub policy: Policy,
    /// How admission levels move.
    pub dagor: Dagor,
    /// Into how many resources cache contents are split.
    pub cache_shards: u32,
    /// Between two polls of a host, ±10 % (weir-control's `scrape.interval` and `cache.interval`).
    pub poll: Duration,
    /// Changes within this time go out as one table (weir-control's `publish.interval`).
    pub publish: Duration,
    /// Between two reports of a caller (the filter's `report_interval`).
    pub report: Duration,
    /// Whether answers carry the host's load.
    pub orca: bool,
    /// From caller to host, one way; also from weir-control to a caller.
    pub network: Duration,
    /// Between the attempts of a request.
    pub backoff: Backoff,
    /// After so long a caller gives up.
    pub deadline: Duration,
    /// Of everything that is drawn.
    pub seed: u64,
}
