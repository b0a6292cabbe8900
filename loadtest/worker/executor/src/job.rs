// SPDX-License-Identifier: Apache-2.0
//! One job: what was asked for, how far it is, and where its time went.

use std::sync::Arc;
use std::time::Duration;

use crate::costs::Cost;
use crate::id::{JobId, JobletId, Rank};
use crate::{Kind, ResultId, Work};

/// What a caller asks for.
#[derive(Debug, Clone)]
pub struct Request<W> {
    /// Priority class, 0 the most important; above 31 counts as 31.
    pub class: u8,
    /// The joblets, each in need of the result of the one before.
    pub steps: Vec<Step<W>>,
}

/// One joblet of a job.
#[derive(Debug, Clone)]
pub struct Step<W> {
    /// Its kind.
    pub kind: Kind,
    /// The name of its result; `None` is never shared and never cached.
    pub result: Option<ResultId>,
    /// Whether the result may go to the cache.
    pub keep: bool,
    /// Cores it can use. It starts with as many of them as are idle.
    pub cores: usize,
    /// What it does.
    pub work: W,
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
    /// A joblet that another job had begun or queued.
    Shared,
}

/// Where the time of a job went, so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spent {
    /// Time in which neither it nor the joblet it needs was on a core.
    pub wait: Duration,
    /// Time a [`Kind::FeedSource`], own or shared, was on a core while it waited for it.
    pub fetch: Duration,
    /// Time its other joblets were on cores.
    pub run: Duration,
    /// What its joblets took, times the cores that they held.
    pub cost: Cost,
    /// Where its data came from.
    pub source: Source,
}

/// What happened to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event<E> {
    /// A joblet that it needs has been given a core for the first time.
    Started(JobId),
    /// Its last joblet has: the wait is final, unless that joblet is suspended.
    Began(JobId, Spent),
    /// It has ended, other than by being cancelled.
    Ended(JobId, Result<Spent, E>),
}

#[derive(Debug)]
pub(crate) struct Job<W: Work> {
    pub(crate) class: u8,
    pub(crate) steps: Vec<Step<W>>,
    /// The first step that is neither done nor skipped.
    pub(crate) next: usize,
    /// The result of the step before.
    pub(crate) input: Option<W::Output>,
    /// The joblet it needs now.
    pub(crate) joblet: Option<JobletId>,
    pub(crate) source: Source,
    /// Whose data it needs.
    pub(crate) key: Option<Arc<str>>,
    /// What its joblets have taken.
    pub(crate) cost: Cost,
    expected: Cost,
    /// Whether that joblet waits for a core.
    pub(crate) waiting: bool,
    /// Whether a joblet that it needs has been on a core.
    pub(crate) started: bool,
    /// Whether its last one has.
    pub(crate) began: bool,
    pub(crate) wait: Duration,
    fetch: Duration,
    run: Duration,
    /// When the current stretch of waiting, fetching or running began.
    since: Duration,
}

impl<W: Work> Job<W> {
    pub(crate) fn new(class: u8, steps: Vec<Step<W>>, now: Duration) -> Self {
        let key = steps.iter().find_map(|step| step.result.as_ref());
        Self {
            class,
            key: key.map(|result| Arc::clone(&result.key)),
            steps,
            next: 0,
            input: None,
            joblet: None,
            source: Source::None,
            cost: Cost::default(),
            expected: Cost::default(),
            waiting: false,
            wait: Duration::ZERO,
            fetch: Duration::ZERO,
            run: Duration::ZERO,
            started: false,
            began: false,
            since: now,
        }
    }

    /// Its place among others; `id` is its own.
    pub(crate) fn rank(&self, id: JobId) -> Rank {
        Rank {
            class: self.class,
            job: id,
        }
    }

    pub(crate) fn wait_so_far(&self, now: Duration) -> Duration {
        self.wait + now.saturating_sub(self.since)
    }

    pub(crate) fn end_wait(&mut self, now: Duration) {
        let waited = self.stretch(now);
        self.wait += waited;
        self.waiting = false;
    }

    /// Ends the time on a core of the joblet that it needed.
    pub(crate) fn end_joblet(&mut self, kind: Kind, core_time: Duration, now: Duration) {
        self.end_stretch(kind, core_time, now);
        self.joblet = None;
    }

    /// It waits again for the joblet that it needs.
    pub(crate) fn suspend(&mut self, kind: Kind, core_time: Duration, now: Duration) {
        self.end_stretch(kind, core_time, now);
        self.waiting = true;
    }

    fn end_stretch(&mut self, kind: Kind, core_time: Duration, now: Duration) {
        let spent = self.stretch(now);
        let (time, cost) = match kind {
            Kind::FeedSource => (&mut self.fetch, &mut self.cost.fetch),
            _ => (&mut self.run, &mut self.cost.run),
        };
        *time += spent;
        *cost += core_time;
    }

    pub(crate) fn expect(&mut self, expected: Cost) {
        self.expected = expected;
    }

    /// Whether it has more to do than to see to it that data are there.
    pub(crate) fn ran_something(&self) -> bool {
        self.steps.iter().any(|step| step.kind != Kind::FeedSource)
    }

    /// Core time that its fetch is expected to need.
    pub(crate) fn expected_fetch(&self) -> Duration {
        self.expected.fetch
    }

    /// Core time that it is expected to need still, without the fetch. The same for as long as it waits.
    pub(crate) fn expected_run(&self) -> Duration {
        match self.ran_something() {
            true => self.expected.run.saturating_sub(self.cost.run),
            false => Duration::ZERO,
        }
    }

    fn stretch(&mut self, now: Duration) -> Duration {
        let spent = now.saturating_sub(self.since);
        self.since = now;
        spent
    }

    pub(crate) fn is_last(&self, step: usize) -> bool {
        step + 1 == self.steps.len()
    }

    pub(crate) fn spent(&self) -> Spent {
        Spent {
            wait: self.wait,
            fetch: self.fetch,
            run: self.run,
            cost: self.cost,
            source: self.source,
        }
    }
}
