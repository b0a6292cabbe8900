// SPDX-License-Identifier: Apache-2.0
//! The executor of a host: which joblet runs next, on which core, and what stays in the cache.
//!
//! ```text
//! submit ──> [fetch waits] ──start──> fetch on a core ──finish──> [run waits] ──start──> run on a core ──finish──> Done
//!    │             ^ jobs that want the same key share one fetch      ^
//!    └── cached ───┴──────────────────────────────────────────────────┘
//! ```
//!
//! The rules are those of document 001, sections 3.4 and 3.5: joblets are ordered by class, then by
//! the submission of their job; a running joblet is never interrupted, so a job of lower class
//! pauses between its joblets; a fetch in flight is shared by every job that wants its key; the
//! cache evicts what was stored first.
//!
//! Nothing here reads a clock or spends time. The caller passes `now` (monotonic, from any origin)
//! and says when a joblet has finished: [`Emulator`] does so from modelled durations.

mod cache;
mod delay;
mod emulator;
mod job;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

pub use cache::{Cache, CacheChanges};
pub use emulator::{Emulator, Event, Timing};
pub use job::{Done, JobId, Request, Source};

use delay::RecentDelay;
use job::{Job, Rank, Stage};

/// Number of priority classes; 0 is the most important.
pub const CLASSES: usize = 32;

/// The size of a host.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Cores; each runs one joblet at a time. At least 1.
    pub cores: usize,
    /// Bytes the cache may hold.
    pub cache_bytes: u64,
    /// Jobs that may wait for a core at the same time.
    pub max_queued: usize,
    /// Cache changes remembered for [`Cache::changes_since`].
    pub change_log: usize,
}

/// As many jobs as allowed are waiting already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{0} jobs are queued already")]
pub struct Full(pub usize);

/// What a core does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Joblet {
    /// Reads the data of a key (FeedSource in document 001).
    Fetch {
        /// The key.
        key: Arc<str>,
        /// Size of its data.
        bytes: u64,
    },
    /// Runs a job on data that is there.
    Run(JobId),
}

/// A joblet that has just been given a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Start {
    /// The core, `0..cores`.
    pub core: usize,
    /// What it runs.
    pub joblet: Joblet,
    /// For a run: all the time its job has waited, final from now on.
    pub waited: Option<Duration>,
}

/// A picture of the load, as the host publishes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    /// Jobs accepted and not answered, and joblets still on a core after their job was cancelled.
    pub in_progress: u32,
    /// Cores that are busy.
    pub busy_cores: u32,
    /// Jobs waiting for a core, by class.
    pub queued: [u32; CLASSES],
    /// Mean wait of the jobs whose last joblet began in the last second; if none did while jobs
    /// wait, the longest of their waits so far.
    pub queuing_delay: Option<Duration>,
}

/// A fetch that waits or runs, and who wants it.
#[derive(Debug)]
struct Flight {
    waiters: BTreeSet<Rank>,
    running: bool,
}

/// Cores, queue and cache of one host.
#[derive(Debug)]
pub struct Executor {
    cores: Vec<Option<Joblet>>,
    queue: BTreeMap<Rank, Joblet>,
    jobs: HashMap<JobId, Job>,
    flights: HashMap<Arc<str>, Flight>,
    cache: Cache,
    queued: [u32; CLASSES],
    max_queued: usize,
    delay: RecentDelay,
    next_job: u64,
}

impl Executor {
    /// An idle host with an empty cache. `epoch` names this life of the cache.
    #[must_use]
    pub fn new(settings: &Settings, epoch: u64) -> Self {
        Self {
            cores: vec![None; settings.cores.max(1)],
            queue: BTreeMap::new(),
            jobs: HashMap::new(),
            flights: HashMap::new(),
            cache: Cache::new(settings.cache_bytes, settings.change_log, epoch),
            queued: [0; CLASSES],
            max_queued: settings.max_queued,
            delay: RecentDelay::default(),
            next_job: 0,
        }
    }

    /// Accepts a job, unless too many wait.
    pub fn submit(&mut self, now: Duration, request: Request) -> Result<JobId, Full> {
        if self.queued_jobs() >= self.max_queued && self.idle_core().is_none() {
            return Err(Full(self.max_queued));
        }
        let id = JobId(self.next_job);
        self.next_job += 1;
        let class = request.class.min(CLASSES as u8 - 1);
        let rank = Rank { class, job: id };
        let source = match &request.key {
            None => Source::None,
            Some(key) if self.cache.contains(key) => Source::Hit,
            Some(key) => self.join_flight(key, request.bytes, rank),
        };
        let stage = match source {
            Source::None | Source::Hit => {
                self.queue.insert(rank, Joblet::Run(id));
                Stage::Ready
            }
            Source::Miss | Source::Shared => Stage::Fetching,
        };
        let fetch_runs = stage == Stage::Fetching && self.fetch_runs(request.key.as_ref());
        self.jobs.insert(
            id,
            Job::new(class, request.key, source, stage, now, !fetch_runs),
        );
        if !fetch_runs {
            self.queued[usize::from(class)] += 1;
        }
        Ok(id)
    }

    /// Gives the first joblet in the queue a core, if both exist. Call until it returns `None`.
    pub fn start(&mut self, now: Duration) -> Option<Start> {
        let core = self.idle_core()?;
        let (_, joblet) = self.queue.pop_first()?;
        let waited = match &joblet {
            Joblet::Fetch { key, .. } => {
                self.start_fetch(now, &Arc::clone(key));
                None
            }
            Joblet::Run(id) => self.start_run(now, *id),
        };
        self.cores[core] = Some(joblet.clone());
        Some(Start {
            core,
            joblet,
            waited,
        })
    }

    /// Frees a core whose joblet is done; returns the job if that was its last joblet and somebody
    /// still wants it. An idle core is left as it is.
    pub fn finish(&mut self, now: Duration, core: usize) -> Option<Done> {
        match self.cores.get_mut(core)?.take()? {
            Joblet::Fetch { key, bytes } => {
                self.finish_fetch(now, key, bytes);
                None
            }
            Joblet::Run(id) => self.jobs.remove(&id).map(|job| job.done(id, now)),
        }
    }

    /// Forgets a job. What waits is dropped; a joblet on a core runs to its end, as document 001
    /// has it, and a fetch that others want goes on. Unknown or finished jobs are ignored.
    pub fn cancel(&mut self, id: JobId) {
        let Some(job) = self.jobs.remove(&id) else {
            return;
        };
        if job.waiting {
            self.queued[usize::from(job.class)] -= 1;
        }
        let rank = Rank {
            class: job.class,
            job: id,
        };
        match job.stage {
            Stage::Ready => {
                self.queue.remove(&rank);
            }
            Stage::Fetching => self.leave_flight(job.key.as_ref(), rank),
            Stage::Running => {}
        }
    }

    /// Every job that is not finished, in order of submission.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobId> {
        let mut ids: Vec<_> = self.jobs.keys().copied().collect();
        ids.sort_unstable();
        ids
    }

    /// The cache.
    #[must_use]
    pub fn cache(&self) -> &Cache {
        &self.cache
    }

    /// The load now.
    pub fn load(&mut self, now: Duration) -> Load {
        let busy = self.cores.iter().flatten().count();
        let abandoned = self.cores.iter().flatten().filter(|j| self.abandoned(j));
        let in_progress = self.jobs.len() + abandoned.count();
        let queuing_delay = self.delay.mean(now).or_else(|| self.longest_wait(now));
        Load {
            in_progress: u32::try_from(in_progress).unwrap_or(u32::MAX),
            busy_cores: u32::try_from(busy).unwrap_or(u32::MAX),
            queued: self.queued,
            queuing_delay,
        }
    }

    fn queued_jobs(&self) -> usize {
        self.queued.iter().map(|n| *n as usize).sum()
    }

    fn idle_core(&self) -> Option<usize> {
        self.cores.iter().position(Option::is_none)
    }

    fn fetch_runs(&self, key: Option<&Arc<str>>) -> bool {
        key.and_then(|key| self.flights.get(key))
            .is_some_and(|flight| flight.running)
    }

    fn abandoned(&self, joblet: &Joblet) -> bool {
        match joblet {
            Joblet::Run(id) => !self.jobs.contains_key(id),
            Joblet::Fetch { key, .. } => self.flights.get(key).is_none_or(|f| f.waiters.is_empty()),
        }
    }

    fn longest_wait(&self, now: Duration) -> Option<Duration> {
        let waiting = self.jobs.values().filter(|job| job.waiting);
        waiting.map(|job| job.wait_so_far(now)).max()
    }

    /// Adds a job to the fetch of its key. A waiting fetch stands in the queue at the rank of the
    /// most important job that wants it, so that a high job is never held up by a low one's place.
    fn join_flight(&mut self, key: &Arc<str>, bytes: u64, rank: Rank) -> Source {
        let Some(flight) = self.flights.get_mut(key) else {
            let flight = Flight {
                waiters: BTreeSet::from([rank]),
                running: false,
            };
            self.flights.insert(Arc::clone(key), flight);
            let key = Arc::clone(key);
            self.queue.insert(rank, Joblet::Fetch { key, bytes });
            return Source::Miss;
        };
        let before = flight.waiters.first().copied();
        flight.waiters.insert(rank);
        if !flight.running
            && let Some(before) = before
            && rank < before
            && let Some(joblet) = self.queue.remove(&before)
        {
            self.queue.insert(rank, joblet);
        }
        Source::Shared
    }

    fn leave_flight(&mut self, key: Option<&Arc<str>>, rank: Rank) {
        let Some((key, flight)) = key.and_then(|k| Some((k, self.flights.get_mut(k)?))) else {
            return;
        };
        flight.waiters.remove(&rank);
        if flight.running {
            return;
        }
        let joblet = self.queue.remove(&rank);
        match (flight.waiters.first(), joblet) {
            (Some(next), Some(joblet)) => {
                self.queue.insert(*next, joblet);
            }
            (None, _) => {
                self.flights.remove(key);
            }
            (Some(_), None) => {}
        }
    }

    fn start_fetch(&mut self, now: Duration, key: &Arc<str>) {
        let Some(flight) = self.flights.get_mut(key) else {
            return;
        };
        flight.running = true;
        for rank in &flight.waiters {
            if let Some(job) = self.jobs.get_mut(&rank.job) {
                job.end_wait(now);
                self.queued[usize::from(rank.class)] -= 1;
            }
        }
    }

    fn finish_fetch(&mut self, now: Duration, key: Arc<str>, bytes: u64) {
        let waiters = self.flights.remove(&key).map(|f| f.waiters);
        self.cache.insert(key, bytes);
        for rank in waiters.unwrap_or_default() {
            if let Some(job) = self.jobs.get_mut(&rank.job) {
                job.end_fetch(now);
                self.queued[usize::from(rank.class)] += 1;
                self.queue.insert(rank, Joblet::Run(rank.job));
            }
        }
    }

    fn start_run(&mut self, now: Duration, id: JobId) -> Option<Duration> {
        let job = self.jobs.get_mut(&id)?;
        job.end_wait(now);
        job.stage = Stage::Running;
        self.queued[usize::from(job.class)] -= 1;
        self.delay.record(now, job.wait);
        Some(job.wait)
    }
}
