// SPDX-License-Identifier: Apache-2.0
//! What processes cost: with requests, and without.

use std::time::Duration;

use anyhow::Result;

use crate::costs::Costs;

/// What a process cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cpu {
    /// While the workload was sent, until the last answer.
    pub(super) spent: Duration,
    /// Share of a core that it takes without requests.
    pub(super) idle: f64,
}

impl Cpu {
    /// What several cost together.
    pub(super) fn sum(all: impl IntoIterator<Item = Self>) -> Self {
        let nothing = Self {
            spent: Duration::ZERO,
            idle: 0.0,
        };
        all.into_iter().fold(nothing, |sum, cpu| Self {
            spent: sum.spent + cpu.spent,
            idle: sum.idle + cpu.idle,
        })
    }

    /// What it spent beyond what it would have without requests.
    pub(super) fn of_requests(self, lasted: Duration) -> Duration {
        self.spent.saturating_sub(lasted.mul_f64(self.idle))
    }
}

/// The costs of a process that has been left alone, and now has requests.
pub(super) struct Meter {
    idle: f64,
    costs: Costs,
}

impl Meter {
    pub(super) fn after(alone: &Costs) -> Result<Self> {
        Ok(Self {
            idle: alone.cores()?,
            costs: alone.anew()?,
        })
    }

    pub(super) fn read(&self) -> Result<Cpu> {
        Ok(Cpu {
            spent: self.costs.cpu()?,
            idle: self.idle,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_takes_without_requests_is_not_theirs() {
        // 50 ms a second alone; then 300 ms in 2 s.
        let cpu = Cpu {
            spent: Duration::from_millis(300),
            idle: 0.05,
        };
        let of_requests = cpu.of_requests(Duration::from_secs(2));
        assert_eq!(of_requests, Duration::from_millis(200));
        assert_eq!(cpu.of_requests(Duration::from_secs(60)), Duration::ZERO);
    }
}
