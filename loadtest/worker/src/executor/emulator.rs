// SPDX-License-Identifier: Apache-2.0
//! An executor whose joblets last as long as a model says.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};
use std::time::Duration;

use super::{Done, Executor, Full, JobId, Joblet, Load, Request, Settings};

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
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// Its last joblet has begun: it has waited so long in all.
    Began(JobId, Duration),
    /// It is finished.
    Done(Done),
}

/// Runs an [`Executor`] on modelled durations.
///
/// Joblets end at the instant the model says, however late the caller notices: a freed core takes
/// its next joblet at that instant too, so a coarse timer delays answers but loses no core time.
#[derive(Debug)]
pub struct Emulator {
    executor: Executor,
    timing: Timing,
    runs: HashMap<JobId, Duration>,
    /// End of each busy core's joblet.
    due: BinaryHeap<Reverse<(Duration, usize)>>,
    events: Vec<Event>,
}

impl Emulator {
    /// An idle host.
    #[must_use]
    pub fn new(settings: &Settings, timing: Timing, epoch: u64) -> Self {
        Self {
            executor: Executor::new(settings, epoch),
            timing,
            runs: HashMap::new(),
            due: BinaryHeap::new(),
            events: Vec::new(),
        }
    }

    /// Accepts a job that will occupy one core for `run` once its data is there.
    pub fn submit(
        &mut self,
        now: Duration,
        request: Request,
        run: Duration,
    ) -> Result<JobId, Full> {
        self.catch_up(now);
        let id = self.executor.submit(now, request)?;
        self.runs.insert(id, run);
        self.dispatch(now);
        Ok(id)
    }

    /// Forgets a job, see [`Executor::cancel`].
    pub fn cancel(&mut self, now: Duration, id: JobId) {
        self.catch_up(now);
        self.executor.cancel(id);
        self.runs.remove(&id);
    }

    /// Everything that has happened up to `now` and was not told yet, in order.
    pub fn advance(&mut self, now: Duration) -> Vec<Event> {
        self.catch_up(now);
        std::mem::take(&mut self.events)
    }

    /// When the next joblet ends.
    #[must_use]
    pub fn next_due(&self) -> Option<Duration> {
        self.due.peek().map(|Reverse((at, _))| *at)
    }

    /// The load now.
    pub fn load(&mut self, now: Duration) -> Load {
        self.catch_up(now);
        self.executor.load(now)
    }

    /// The executor underneath.
    #[must_use]
    pub fn executor(&self) -> &Executor {
        &self.executor
    }

    fn catch_up(&mut self, now: Duration) {
        while let Some(Reverse((at, core))) = self.due.peek().copied()
            && at <= now
        {
            self.due.pop();
            if let Some(done) = self.executor.finish(at, core) {
                self.runs.remove(&done.job);
                self.events.push(Event::Done(done));
            }
            self.dispatch(at);
        }
    }

    fn dispatch(&mut self, now: Duration) {
        while let Some(start) = self.executor.start(now) {
            let lasts = match &start.joblet {
                Joblet::Fetch { bytes, .. } => self.timing.fetch(*bytes),
                Joblet::Run(id) => self.runs.get(id).copied().unwrap_or_default(),
            };
            if let (Joblet::Run(id), Some(wait)) = (&start.joblet, start.waited) {
                self.events.push(Event::Began(*id, wait));
            }
            self.due.push(Reverse((now + lasts, start.core)));
        }
    }
}
