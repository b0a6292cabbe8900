// SPDX-License-Identifier: Apache-2.0
//! The ways to share the machine.

use serde::Serialize;

/// The core that is always memcached's where weir-governor runs, and the one that is memcached's or a job's.
pub const MEMCACHEDS: u32 = 0;
/// See [`MEMCACHEDS`].
pub const JOBS: u32 = 1;

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
    /// As blocks, and weir-governor itself has memcached's core alone.
    BlocksBeside,
    /// As blocks, and weir-governor itself has the jobs' core alone.
    BlocksApart,
    /// weir-governor by latency.
    #[value(name = "latency_slack")]
    LatencySlack,
}

impl Way {
    /// Whether weir-governor runs.
    #[must_use]
    pub fn is_governed(self) -> bool {
        !matches!(self, Self::NoGovernor | Self::AllToMemcached)
    }

    /// The core that weir-governor itself is kept on; none: all of them.
    #[must_use]
    pub fn pinned(self) -> Option<u32> {
        match self {
            Self::BlocksBeside => Some(MEMCACHEDS),
            Self::BlocksApart => Some(JOBS),
            _ => None,
        }
    }
}
