// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use crate::{HostId, Level, Work};

/// Whether a host takes requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HostState {
    /// Takes requests.
    Up,
    /// Finishes what it has and gets nothing new.
    Draining,
    /// Does not answer.
    Down,
}

/// A host's figures at one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// When they were true.
    pub observed: Duration,
    /// Jobs running or queued.
    pub in_progress: u32,
    /// Jobs queued, all classes together.
    pub queued: u32,
    /// Mean wait of jobs in the queue over the host's last window.
    pub queuing_delay: Option<Duration>,
    /// Cores in use.
    pub busy_cores: Option<u32>,
    /// Core time that its waiting jobs are expected to need.
    pub work: Option<Work>,
}

impl Load {
    /// Whether the figures are older than `limit`.
    pub fn is_stale(&self, now: Duration, limit: Duration) -> bool {
        now.saturating_sub(self.observed) > limit
    }

    /// Cores in use: as many as jobs run where the host does not say.
    pub(crate) fn busy(&self) -> u32 {
        let running = self.in_progress.saturating_sub(self.queued);
        self.busy_cores.unwrap_or(running)
    }
}

/// A row of the host table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// `ip:port` or `[ip6]:port`.
    pub address: String,
    /// Whether it takes requests.
    pub state: HostState,
    /// Its figures; none where it has not been heard of.
    pub load: Option<Load>,
    /// The admission level that weir-control gave it.
    pub level: Level,
    /// Thousandths of a core at nominal speed; 0 where unknown.
    pub capacity_millicores: u32,
    /// How fast it does its work beside the others, in thousandths; 0 where unknown.
    pub speed_permille: u32,
    /// When it goes away by itself, on the clock of decisions; none where it does not.
    pub preempt_at: Option<Duration>,
    /// The place of its zone among those of the table ([`Table::with_zones`](crate::Table::with_zones)), counted from
    /// 1; 0 where unknown.
    pub zone: u32,
}

impl Host {
    /// Its identity.
    pub fn id(&self) -> HostId {
        HostId::of(&self.address)
    }

    /// Cores at nominal speed, parts of one too; none where unknown.
    pub(crate) fn cores(&self) -> Option<f64> {
        cores(self.capacity_millicores)
    }

    /// Whether it is as fast as the others, and does not go away by itself.
    pub(crate) fn is_usual(&self) -> bool {
        matches!(self.speed_permille, 0 | 1000) && self.preempt_at.is_none()
    }

    /// Beside the others, 1 where unknown.
    pub(crate) fn speed(&self) -> f64 {
        match self.speed_permille {
            0 => 1.0,
            permille => f64::from(permille) / 1000.0,
        }
    }
}

/// Cores of which there are so many thousandths; none of none, which stands for unknown.
pub(crate) fn cores(millicores: u32) -> Option<f64> {
    (millicores > 0).then(|| f64::from(millicores) / 1000.0)
}
