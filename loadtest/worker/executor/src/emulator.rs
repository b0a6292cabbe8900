// SPDX-License-Identifier: Apache-2.0
//! An executor whose joblets last as long as a model says.

mod busy;
mod shared_clock;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use crate::id::{JobId, JobletId};
use crate::job::{Event, Request, Step};
use crate::work::{Product, ResultId, Work};
use crate::{Executor, Full, Kind, Load, Settings, Unwanted};

use busy::Busy;
use shared_clock::SharedClock;

/// A joblet that only takes time and room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Modelled {
    /// Time on one core; on several it is that much shorter.
    pub core_time: Duration,
    /// Size of its result.
    pub bytes: u64,
}

impl Work for Modelled {
    type Output = u64;
    type Error = Infallible;
}

/// How long a fetch takes: `fetch_base + bytes / fetch_bytes_per_second`.
#[derive(Debug, Clone)]
pub struct Timing {
    /// Time to the first byte.
    pub fetch_base: Duration,
    /// Bandwidth of one fetch. At least 1.
    pub fetch_bytes_per_second: u64,
}

impl Timing {
    /// Duration of a fetch of so many bytes.
    #[must_use]
    pub fn fetch(&self, bytes: u64) -> Duration {
        let micros = u128::from(bytes) * 1_000_000 / u128::from(self.fetch_bytes_per_second.max(1));
        self.fetch_base + Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// A job of two joblets: the fetch of a key's data, if it has a key, and a run on one core.
    #[must_use]
    pub fn job(
        &self,
        key: Option<Arc<str>>,
        bytes: u64,
        class: u8,
        run: Duration,
    ) -> Request<Modelled> {
        let fetch = key.map(|key| Step {
            kind: Kind::FeedSource,
            result: Some(ResultId {
                kind: Kind::FeedSource,
                key,
                version: 0,
            }),
            keep: true,
            cores: 1,
            work: Modelled {
                core_time: self.fetch(bytes),
                bytes,
            },
        });
        let run = Step {
            kind: Kind::Operators,
            result: None,
            keep: false,
            cores: 1,
            work: Modelled {
                core_time: run,
                bytes: 0,
            },
        };
        Request {
            class,
            steps: fetch.into_iter().chain([run]).collect(),
        }
    }
}

/// Runs an [`Executor`] on modelled durations.
///
/// Joblets end at the instant the model says, however late the caller notices: a freed core takes
/// its next joblet at that instant too, so a coarse timer delays answers but loses no core time.
/// Joblets that hold more cores than there are share them evenly. One that is to make room stands at once: batches, at
/// whose borders real work does, are short beside joblets.
#[derive(Debug)]
pub struct Emulator {
    executor: Executor<Modelled>,
    clock: SharedClock,
    busy: Busy,
    /// End of each running joblet, on the shared clock.
    due: BinaryHeap<Reverse<(Duration, JobletId, u64)>>,
    /// Core time that suspended joblets have left.
    standing: HashMap<JobletId, Duration>,
}

impl Emulator {
    /// An idle host.
    #[must_use]
    pub fn new(settings: &Settings, epoch: u64) -> Self {
        Self {
            executor: Executor::new(settings, epoch),
            clock: SharedClock::default(),
            busy: Busy::default(),
            due: BinaryHeap::new(),
            standing: HashMap::new(),
        }
    }

    /// Accepts a job.
    pub fn submit(&mut self, now: Duration, request: Request<Modelled>) -> Result<JobId, Full> {
        self.catch_up(now);
        let id = self.executor.submit(now, request)?;
        self.dispatch(now);
        Ok(id)
    }

    /// Forgets a job, see [`Executor::cancel`].
    pub fn cancel(&mut self, now: Duration, id: JobId) {
        self.catch_up(now);
        if let Some(Unwanted::Stands(joblet)) = self.executor.cancel(id) {
            self.standing.remove(&joblet);
        }
    }

    /// Everything that has happened up to `now` and was not told yet, in order.
    pub fn advance(&mut self, now: Duration) -> Vec<Event<Infallible>> {
        self.catch_up(now);
        self.executor.events()
    }

    /// As [`Emulator::advance`], without a list of its own.
    pub fn drain(&mut self, now: Duration) -> impl Iterator<Item = Event<Infallible>> + '_ {
        self.catch_up(now);
        self.executor.drain()
    }

    /// When the next joblet ends.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        let Reverse((at, ..)) = self.due.peek()?;
        Some(self.clock.real(*at))
    }

    /// Jobs that wait for a core now.
    pub fn queued(&mut self, now: Duration) -> u32 {
        self.catch_up(now);
        self.executor.queued()
    }

    /// The load now.
    pub fn load(&mut self, now: Duration) -> Load {
        self.catch_up(now);
        self.executor.load(now)
    }

    /// Core time in which cores were busy, from the beginning to `now`.
    pub fn busy_time(&mut self, now: Duration) -> Duration {
        self.catch_up(now);
        self.busy.until(now)
    }

    /// Until a core is free for another job of the class: every joblet that goes before takes the core
    /// that is free first, one core each, a job's next without waiting for the one before. Exact for jobs
    /// of one joblet on one core.
    pub fn free_in(&mut self, now: Duration, class: u8) -> Duration {
        self.catch_up(now);
        let idle = self
            .executor
            .cores()
            .saturating_sub(self.executor.held_cores());
        let mut free: BinaryHeap<_> = std::iter::repeat_n(Reverse(Duration::ZERO), idle).collect();
        for Reverse((due, joblet, _)) in &self.due {
            let left = Reverse(self.clock.real(*due).saturating_sub(now));
            free.extend(std::iter::repeat_n(left, self.executor.cores_of(*joblet)));
        }
        let to_do = self.executor.to_do();
        let before = to_do.filter(|(rank, ..)| rank.class <= class);
        let left = |joblet: Option<JobletId>| self.standing.get(&joblet?).copied();
        let before =
            before.map(|(rank, joblet, work)| (rank, left(joblet).unwrap_or(work.core_time)));
        let mut before: Vec<_> = before.collect();
        before.sort_unstable();
        for (_, core_time) in before {
            if let Some(mut first) = free.peek_mut() {
                first.0 += core_time;
            }
        }
        free.peek().map_or(Duration::ZERO, |first| first.0)
    }

    /// Until a result is there that is being made; none of one that waits for a core, or that nobody
    /// makes.
    pub fn left(&mut self, now: Duration, result: &ResultId) -> Option<Duration> {
        self.catch_up(now);
        let making = self.executor.making(result)?;
        let mut due = self.due.iter();
        let Reverse((due, ..)) = due.find(|Reverse((_, joblet, _))| *joblet == making)?;
        Some(self.clock.real(*due).saturating_sub(now))
    }

    /// The executor underneath.
    #[must_use]
    pub fn executor(&self) -> &Executor<Modelled> {
        &self.executor
    }

    fn catch_up(&mut self, now: Duration) {
        while let Some(Reverse((at, joblet, bytes))) = self.due.peek().copied()
            && let real = self.clock.real(at)
            && real <= now
        {
            self.due.pop();
            self.clock.reach(real, at);
            let product = Product {
                output: bytes,
                bytes,
            };
            self.executor.finish(real, joblet, Ok(product));
            self.dispatch(real);
        }
    }

    fn dispatch(&mut self, now: Duration) {
        loop {
            while let Some(start) = self.executor.start(now) {
                let left = self.standing.remove(&start.joblet);
                let core_time = left.unwrap_or(start.work.core_time);
                let lasts = core_time / count(start.cores);
                let due = self.clock.shared(now) + lasts;
                self.due
                    .push(Reverse((due, start.joblet, start.work.bytes)));
            }
            let Some(joblet) = self.executor.suspend() else {
                break;
            };
            self.stand(now, joblet);
        }
        let (held, cores) = (self.executor.held_cores(), self.executor.cores());
        self.clock.set_rate(now, cores, held);
        self.busy.change(now, held.min(cores));
    }

    fn stand(&mut self, now: Duration, joblet: JobletId) {
        let cores = self.executor.cores_of(joblet);
        let shared = self.clock.shared(now);
        self.due.retain(|Reverse((due, other, _))| {
            if *other == joblet {
                let left = due.saturating_sub(shared) * count(cores);
                self.standing.insert(joblet, left);
            }
            *other != joblet
        });
        // Somebody wants it: it has been asked just now.
        self.executor.suspended(now, joblet);
    }
}

fn count(cores: usize) -> u32 {
    u32::try_from(cores).unwrap_or(u32::MAX)
}
