// SPDX-License-Identifier: Apache-2.0
//! The ways to share the machine.

use serde::Serialize;

/// Who decides which cores memcached has and which the jobs.
#[derive(Clone, Copy, Debug, clap::ValueEnum, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// The kernel: everything runs on all cores, two jobs at a time.
    NoGovernor,
    /// Nobody has to: all cores are memcached's while it is asked, and jobs run after.
    AllToMemcached,
    /// weir-governor by CPU use.
    Blocks,
    /// weir-governor by latency.
    #[value(name = "latency_slack")]
    LatencySlack,
}

impl Way {
    /// Whether weir-governor runs.
    #[must_use]
    pub fn is_governed(self) -> bool {
        matches!(self, Self::Blocks | Self::LatencySlack)
    }
}
