// SPDX-License-Identifier: Apache-2.0
//! Jobs' cores and their ways of the L3 cache: one of both grows at a time, as far as memory keeps up.
//!
//! ```text
//!  each 2 s:  memory > 90 % of its peak    ──> jobs lose the cores that use what is above
//!   cache:    a way more, if memory stays below it ──> was no less read by that: it goes back, on with cores
//!                                                      did jobs read no less: on with cores
//!   cores:    a core more, if memory stays below it ──> would it not: on with cache
//! ```
//! Heracles, section 4.3, algorithm 2. Jobs begin with one core and a tenth of the cache, in the phase of the cache (from
//! memory). Otherwise than there:
//!
//! - What the service reads is measured (MBM), where the paper has a model from an offline profile.
//! - Whether a way more has paid is seen at the next decision, not at once: a reading takes a second.
//! - How fast jobs get on (instructions) is not known: a way has paid for them when they read less. Jobs that get faster
//!   and read as much have cores first.
//! - Of several L3 caches the one with most traffic counts, and all are divided alike.
//! - While nothing is measured, jobs keep what they have.

use crate::cores::Bounds;
use crate::sensed::Bandwidth;

/// Of the peak.
const MOST: f64 = 0.9;
/// Of all ways that jobs may have, at the beginning: one in so many.
const FIRST: u32 = 10;

/// What memory can do, and what of the cache can be divided.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Bytes a second of the memory behind one L3 cache.
    pub peak: f64,
    /// Of its ways, those that jobs may have: the machine says it. None: the cache is left alone.
    pub ways: Option<Bounds>,
}

/// What becomes of jobs' cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// They stay.
    Stay,
    /// One more.
    More,
    /// So many less.
    Less(usize),
}

/// What grows next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Cache,
    Cores,
}

/// What jobs have, and what was tried.
#[derive(Debug)]
pub(super) struct Memory {
    params: Params,
    phase: Phase,
    ways: u32,
    /// What was read before the last way, of which it is not known yet whether it pays.
    trial: Option<Bandwidth>,
    last: Option<Bandwidth>,
}

impl Memory {
    /// Jobs have no cores.
    pub(super) fn new(params: Params) -> Self {
        let mut memory = Self {
            params,
            phase: Phase::Cache,
            ways: 0,
            trial: None,
            last: None,
        };
        memory.end();
        memory
    }

    /// Jobs have no cores any more.
    pub(super) fn end(&mut self) {
        self.ways = self.params.ways.map_or(0, |ways| ways.least);
        (self.phase, self.trial) = (Phase::Cache, None);
    }

    /// Of the cache, the jobs'.
    pub(super) fn ways(&self) -> Option<u32> {
        self.params.ways.map(|_| self.ways)
    }

    /// The next decision about jobs that have so many cores, and whether they may have more.
    pub(super) fn step(&mut self, seen: Option<Bandwidth>, cores: usize, grows: bool) -> Step {
        let last = self.last;
        let is_new = |now: &Bandwidth| last.is_none_or(|last| now.at > last.at);
        let Some(now) = seen.filter(is_new) else {
            return Step::Stay;
        };
        self.last = Some(now);
        if let Some(before) = self.trial.take() {
            self.judge(before, now);
        }
        let limit = MOST * self.params.peak;
        let each = now.jobs / cores.max(1) as f64;
        if now.total > limit {
            // Of jobs that read nothing, nothing helps.
            let many = ((now.total - limit) / each).ceil() as usize;
            return match now.jobs > 0.0 && cores > 0 {
                true => Step::Less(many.min(cores)),
                false => Step::Stay,
            };
        }
        if !grows {
            return Step::Stay;
        }
        if cores == 0 {
            self.begin();
            return Step::More;
        }
        let change = last.map_or(0.0, |last| now.total - last.total);
        match self.phase {
            Phase::Cache => {
                self.grow(now, now.total + change <= limit);
                Step::Stay
            }
            Phase::Cores if now.total + each > limit => {
                self.phase = Phase::Cache;
                Step::Stay
            }
            Phase::Cores => Step::More,
        }
    }

    fn begin(&mut self) {
        self.end();
        if let Some(ways) = self.params.ways {
            // What is above the most, the service's, is as much as the least.
            let all = ways.least + ways.most;
            self.ways = (all / FIRST).clamp(ways.least, ways.most);
        }
    }

    /// A way more.
    fn grow(&mut self, now: Bandwidth, keeps_up: bool) {
        let most = self.params.ways.map_or(0, |ways| ways.most);
        if keeps_up && self.ways < most {
            self.ways += 1;
            self.trial = Some(now);
        } else {
            self.phase = Phase::Cores;
        }
    }

    /// Whether the last way has paid.
    fn judge(&mut self, before: Bandwidth, now: Bandwidth) {
        if now.total >= before.total {
            self.ways -= 1;
            self.phase = Phase::Cores;
        } else if now.jobs >= before.jobs {
            self.phase = Phase::Cores;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensed::Nanos;

    struct Socket {
        memory: Memory,
        second: u64,
    }

    impl Socket {
        /// Of 20 ways and 100 GB/s, so that 90 are the most.
        fn new() -> Self {
            let params = Params {
                peak: 100e9,
                ways: Some(Bounds { least: 1, most: 19 }),
            };
            Self {
                memory: Memory::new(params),
                second: 0,
            }
        }

        /// A decision at which the jobs read so many GB/s with so many cores, and the service so many.
        fn step(&mut self, cores: usize, jobs: f64, service: f64) -> (Step, u32) {
            self.second += 2;
            let seen = Bandwidth {
                at: Nanos(self.second * 1_000_000_000),
                jobs: jobs * 1e9,
                total: (jobs + service) * 1e9,
            };
            let step = self.memory.step(Some(seen), cores, true);
            (step, self.memory.ways().unwrap())
        }
    }

    #[test]
    fn jobs_begin_with_a_core_and_a_tenth_of_the_cache_and_have_ways_as_long_as_these_pay() {
        let mut socket = Socket::new();
        assert_eq!(socket.memory.ways(), Some(1));
        assert_eq!(socket.step(0, 0.0, 20.0), (Step::More, 2));
        assert_eq!(socket.step(1, 10.0, 20.0), (Step::Stay, 3));
        assert_eq!(socket.step(1, 8.0, 20.0), (Step::Stay, 4));
        // No less is read by the fourth: it goes back, and cores follow.
        assert_eq!(socket.step(1, 8.0, 20.0), (Step::More, 3));
        assert_eq!(socket.step(2, 16.0, 20.0), (Step::More, 3));
    }

    #[test]
    fn a_way_by_which_only_the_service_reads_less_stays_and_is_the_last() {
        let mut socket = Socket::new();
        socket.step(0, 0.0, 20.0);
        assert_eq!(socket.step(1, 10.0, 20.0), (Step::Stay, 3));
        assert_eq!(socket.step(1, 10.0, 19.0), (Step::More, 3));
    }

    #[test]
    fn cores_grow_until_memory_would_be_too_busy_and_then_ways_do() {
        let mut socket = Socket::new();
        socket.step(0, 0.0, 20.0);
        socket.step(1, 20.0, 20.0);
        assert_eq!(socket.step(1, 20.0, 20.0), (Step::More, 2));
        assert_eq!(socket.step(2, 40.0, 20.0), (Step::More, 2));
        // A fourth core would read up to the limit and beyond.
        assert_eq!(socket.step(3, 60.0, 20.0), (Step::Stay, 2));
        // So would a way, if memory gets busier as it has: cores again, which may not.
        assert_eq!(socket.step(3, 60.0, 26.0), (Step::Stay, 2));
        assert_eq!(socket.step(3, 60.0, 25.0), (Step::Stay, 2));
        assert_eq!(socket.step(3, 60.0, 24.0), (Step::Stay, 3));
        assert_eq!(socket.step(3, 50.0, 24.0), (Step::Stay, 4));
    }

    #[test]
    fn above_the_limit_jobs_lose_the_cores_that_use_what_is_too_much() {
        let mut socket = Socket::new();
        socket.step(0, 0.0, 20.0);
        // 5 GB/s too much, of 10 for a core.
        assert_eq!(socket.step(4, 40.0, 55.0).0, Step::Less(1));
        assert_eq!(socket.step(4, 40.0, 65.0).0, Step::Less(2));
        assert_eq!(socket.step(4, 1.0, 120.0).0, Step::Less(4));
        assert_eq!(socket.step(0, 0.0, 120.0).0, Step::Stay);
        // Also where they may have no more.
        let seen = Bandwidth {
            at: Nanos(u64::MAX),
            jobs: 40e9,
            total: 95e9,
        };
        assert_eq!(socket.memory.step(Some(seen), 4, false), Step::Less(1));
    }

    #[test]
    fn what_is_not_measured_or_was_decided_upon_changes_nothing() {
        let mut socket = Socket::new();
        assert_eq!(socket.memory.step(None, 0, true), Step::Stay);
        socket.step(0, 0.0, 20.0);
        let seen = Bandwidth {
            at: Nanos(socket.second * 1_000_000_000),
            jobs: 90e9,
            total: 99e9,
        };
        assert_eq!(socket.memory.step(Some(seen), 3, true), Step::Stay);
    }

    #[test]
    fn jobs_without_cores_have_the_least_of_the_cache() {
        let mut socket = Socket::new();
        socket.step(0, 0.0, 20.0);
        assert_eq!(socket.step(1, 10.0, 20.0).1, 3);
        socket.memory.end();
        assert_eq!(socket.memory.ways(), Some(1));
    }
}
