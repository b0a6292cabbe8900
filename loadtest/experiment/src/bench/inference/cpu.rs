// SPDX-License-Identifier: Apache-2.0
//! What processes cost: with requests, and without.

use std::time::{Duration, Instant};

use anyhow::Result;
use weir_stage::usage::Process;

/// What a process cost.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cpu {
    /// While the workload was sent, until the last answer.
    pub(super) spent: Duration,
    /// Share of a core that it takes without requests.
    pub(super) idle: f64,
}

impl Cpu {
    /// What it spent beyond what it would have without requests.
    pub(super) fn of_requests(self, lasted: Duration) -> Duration {
        self.spent.saturating_sub(lasted.mul_f64(self.idle))
    }
}

/// CPU times so far, and when.
pub(super) struct Spent {
    pub(super) envoy: Moment,
    asked: Option<Moment>,
}

/// Of one process.
#[derive(Clone, Copy)]
pub(super) struct Moment {
    at: Instant,
    cpu: Duration,
}

impl Spent {
    pub(super) fn now(envoy: Process, asked: Option<Process>) -> Result<Self> {
        Ok(Self {
            envoy: Moment::of(envoy)?,
            asked: asked.map(Moment::of).transpose()?,
        })
    }

    /// What the picker or weir-control cost; see [`Moment::since`].
    pub(super) fn asked_since(&self, idle: &Self, begin: &Self) -> Option<Cpu> {
        Some(self.asked?.since(idle.asked?, begin.asked?))
    }
}

impl Moment {
    fn of(process: Process) -> Result<Self> {
        let cpu = process.cpu()?;
        Ok(Self {
            at: Instant::now(),
            cpu,
        })
    }

    /// From `begin` to `idle` there were no requests, since then there were.
    pub(super) fn since(self, idle: Self, begin: Self) -> Cpu {
        let alone = (idle.cpu - begin.cpu).as_secs_f64();
        Cpu {
            spent: self.cpu - idle.cpu,
            idle: alone / (idle.at - begin.at).as_secs_f64(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_takes_without_requests_is_not_theirs() {
        let begin = Instant::now();
        let at = |s: u64, cpu_ms: u64| Moment {
            at: begin + Duration::from_secs(s),
            cpu: Duration::from_millis(cpu_ms),
        };
        // 50 ms a second alone; then 300 ms in 2 s.
        let cpu = at(4, 400).since(at(2, 100), at(0, 0));
        let of_requests = cpu.of_requests(Duration::from_secs(2));
        assert_eq!(of_requests, Duration::from_millis(200));
        assert_eq!(cpu.of_requests(Duration::from_secs(60)), Duration::ZERO);
    }
}
