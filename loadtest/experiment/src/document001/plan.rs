// SPDX-License-Identifier: Apache-2.0
//! How large the experiment is, as data.

use std::time::Duration;

use weir_replay::backoff::Backoff;
use weir_sim::document001::Params;

use crate::demo::plan::{Feeds, Plan as Demo};

/// A request is not tried again after it failed (section 7.2); each attempt that is refused is another one.
pub(super) const ATTEMPTS: u32 = 1000;
/// Of the submitter where no server is available, in the document's time: weir-sim has the same.
pub(super) const BACKOFF: Backoff = Backoff {
    base: Duration::from_secs(1),
    cap: Duration::from_secs(60),
};
/// Between two looks at Consul, Prometheus and the caches, in the document's time (section 7.3).
pub(super) const NEWS: Duration = Duration::from_secs(5);
/// As document 001 has it (section 9.1.2).
pub(super) const STALLED: u32 = 100;

/// So much of the machine's cores is in use at the pace at which hosts are asked that do the work: with more, requests
/// would wait for the machine, which all hosts share, and not for a host.
const BUSY: f64 = 0.6;
/// They are first asked for so long at the demonstration's pace, to see what a request takes.
const LOOK: Duration = Duration::from_secs(20);

const MINUTE: Duration = Duration::from_secs(60);
const NOON: Duration = Duration::from_secs(12 * 3600);

/// The same for every run.
pub(super) struct Plan {
    pub(super) work: Work,
    /// Sidecars of one worker thread that take turns.
    pub(super) callers: usize,
    pub(super) hosts: usize,
    pub(super) cores: usize,
    pub(super) cache_bytes: u64,
    /// More queued jobs than this close a host, or move its level.
    pub(super) queued_jobs: u32,
    /// All of the document's times are so many times shorter.
    pub(super) speed: u32,
    /// A caller that has no good answer by then gives up, in this machine's time.
    pub(super) deadline: Duration,
    pub(super) seed: u64,
}

/// What hosts do.
pub(super) enum Work {
    /// They sleep for as long as the document's requests would take.
    Emulated(Box<Stretch>),
    /// They apply rules to feeds.
    Real(Feeds),
}

/// A part of the document's day.
pub(super) struct Stretch {
    pub(super) params: Params,
    pub(super) from: Duration,
    pub(super) lasts: Duration,
}

impl Plan {
    pub(super) fn new(real: bool, quick: bool) -> Self {
        match (real, quick) {
            (true, false) => Self::real(MINUTE),
            (true, true) => Self::real(MINUTE / 4),
            (false, true) => Self::emulated(2, 2),
            (false, false) => Self::emulated(10, 10),
        }
    }

    /// So many minutes before noon, when most is asked and many schedules begin, and after it.
    pub(super) fn emulated(before: u32, after: u32) -> Self {
        let params = Params::default();
        Self {
            callers: 4,
            hosts: 14,
            cores: params.cores.round() as usize,
            cache_bytes: params.cache_bytes as u64,
            queued_jobs: STALLED,
            speed: 10,
            // What is still under way then is a request that no end was seen of.
            deadline: Duration::from_secs(60),
            seed: 1,
            work: Work::Emulated(Box::new(Stretch {
                params,
                from: NOON - MINUTE * before,
                lasts: MINUTE * (before + after),
            })),
        }
    }

    /// What is played before, to find out at which pace hosts that do the work keep [`BUSY`] of the cores in use: none
    /// where they are emulated.
    pub(super) fn calm(&self) -> Option<Self> {
        matches!(self.work, Work::Real(_)).then(|| Self {
            cache_bytes: self.cache_bytes,
            ..Self::real(LOOK)
        })
    }

    /// The same at that pace, by how busy the cores were in the calm.
    pub(super) fn paced(mut self, busy: f64) -> Self {
        if let Work::Real(feeds) = &mut self.work {
            let rate = &mut feeds.params.rate;
            rate.from = (rate.from * BUSY / busy.max(0.01)).round();
            rate.to = rate.from;
        }
        self
    }

    /// A mix of projects as in the demonstration with real hosts.
    fn real(lasts: Duration) -> Self {
        let demo = Demo::real(false);
        Self {
            work: Work::Real(Feeds::small(lasts)),
            callers: 2,
            hosts: demo.hosts,
            cores: demo.cores,
            cache_bytes: 128_000_000,
            queued_jobs: demo.limits.breaker_queued_jobs,
            speed: 1,
            deadline: demo.deadline,
            seed: 1,
        }
    }

    /// A time of the document as it is here.
    pub(super) fn compressed(&self, time: Duration) -> Duration {
        time / self.speed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pace_follows_from_what_a_request_takes_and_emulated_hosts_need_none() {
        let rate = |plan: Plan| match plan.work {
            Work::Real(feeds) => feeds.params.rate.from,
            Work::Emulated(_) => 0.0,
        };
        let real = || Plan::new(true, false);
        assert_eq!(real().calm().map(rate), Some(30.0));
        assert_eq!(rate(real().paced(0.2)), 90.0);
        assert!(Plan::emulated(1, 1).calm().is_none());
    }
}
