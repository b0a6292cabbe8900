// SPDX-License-Identifier: Apache-2.0
//! One job: what was asked for, how far it is, and where its time went.

use std::sync::Arc;
use std::time::Duration;

/// Names a job within one executor, in order of submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub(super) u64);

/// What a caller asks for.
#[derive(Debug, Clone)]
pub struct Request {
    /// Names the data the job needs; `None` needs none.
    pub key: Option<Arc<str>>,
    /// Size of that data.
    pub bytes: u64,
    /// Priority class, 0 the most important; above 31 counts as 31.
    pub class: u8,
}

/// Where the data of a job came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// The job needs no data.
    None,
    /// The cache.
    Hit,
    /// A fetch of its own.
    Miss,
    /// A fetch that another job had begun or queued.
    Shared,
}

/// A finished job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// The job.
    pub job: JobId,
    /// Time in which neither it nor the fetch it needs was on a core.
    pub wait: Duration,
    /// Time its fetch, own or shared, was on a core while it waited for it.
    pub fetch: Duration,
    /// Time its run was on a core.
    pub run: Duration,
    /// Where its data came from.
    pub source: Source,
}

/// Place in the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) class: u8,
    pub(super) job: JobId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// Needs a fetch that waits or runs.
    Fetching,
    /// Its run waits.
    Ready,
    /// Its run is on a core.
    Running,
}

#[derive(Debug)]
pub(super) struct Job {
    pub(super) class: u8,
    pub(super) key: Option<Arc<str>>,
    pub(super) stage: Stage,
    pub(super) waiting: bool,
    pub(super) wait: Duration,
    source: Source,
    fetch: Duration,
    /// When the current stretch of waiting, fetching or running began.
    since: Duration,
}

impl Job {
    pub(super) fn new(
        class: u8,
        key: Option<Arc<str>>,
        source: Source,
        stage: Stage,
        now: Duration,
        waiting: bool,
    ) -> Self {
        Self {
            class,
            key,
            stage,
            waiting,
            wait: Duration::ZERO,
            source,
            fetch: Duration::ZERO,
            since: now,
        }
    }

    pub(super) fn wait_so_far(&self, now: Duration) -> Duration {
        self.wait + now.saturating_sub(self.since)
    }

    pub(super) fn end_wait(&mut self, now: Duration) {
        self.wait += now.saturating_sub(self.since);
        self.since = now;
        self.waiting = false;
    }

    pub(super) fn end_fetch(&mut self, now: Duration) {
        self.fetch += now.saturating_sub(self.since);
        self.since = now;
        self.stage = Stage::Ready;
        self.waiting = true;
    }

    pub(super) fn done(self, job: JobId, now: Duration) -> Done {
        Done {
            job,
            wait: self.wait,
            fetch: self.fetch,
            run: now.saturating_sub(self.since),
            source: self.source,
        }
    }
}
