// SPDX-License-Identifier: Apache-2.0
//! Joblets that run make room for more important ones, and go on later where they stood: Garefalakis et al., "Neptune:
//! Scheduling Suspendable Tasks for Unified Stream/Batch Applications", SoCC 2019, whose tasks are coroutines that yield
//! at the borders of records. From the abstract: which task yields first, and how many may stand at a time, is decided
//! here.
//!
//! ```text
//! suspend() ─> asked, still runs ─its work stands─> suspended() ─> waits at its rank ─start()─> goes on, `resumed`
//!                     └─ ends before a border: finish() as ever
//! ```

use std::time::Duration;

use crate::id::JobletId;
use crate::joblet::Running;
use crate::{Executor, Kind, Work};

/// What nobody wants any more, of a job that has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unwanted {
    /// The joblet runs, and may go on to its end: its result may be of use to others.
    Runs(JobletId),
    /// The joblet was suspended and is forgotten: its work is to be stopped.
    Stands(JobletId),
}

/// How many joblets make room.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Suspensions {
    /// Asked to, and running still.
    pub(crate) asked: usize,
    /// Waiting with their work begun.
    pub(crate) suspended: usize,
}

impl<W: Work> Executor<W> {
    /// The next joblet that shall make room: where no core is idle and something waits that is more important, the least
    /// important one that runs, of several the youngest job's. One is asked for each that waits, so that as many at
    /// most stand as there are cores: each keeps its memory and its thread. A [`Kind::FeedSource`] waits for I/O rather
    /// than for its core, and is never asked; nor is a [`Kind::OutputFeed`] on several cores, which hand on in turn.
    ///
    /// To be called until it returns `None`, after [`Executor::start`] has. [`Executor::suspended`] follows when the
    /// joblet's work stands still, or [`Executor::finish`] if it ends before.
    pub fn suspend(&mut self) -> Option<JobletId> {
        let Suspensions { asked, suspended } = self.suspensions;
        if !self.suspends || self.idle > 0 || asked + suspended >= self.cores {
            return None;
        }
        let may = self.joblets.iter().filter_map(|(id, joblet)| {
            let may = |running: &Running| match joblet.step.kind {
                Kind::FeedSource => false,
                Kind::SharedOperators | Kind::Operators => !running.asked,
                Kind::OutputFeed => !running.asked && running.cores == 1,
            };
            joblet.running.filter(may)?;
            joblet.waiters.first().map(|first| (first, *id))
        });
        let (rank, id) = may.max()?;
        self.scheduler.more_important(rank.class).nth(asked)?;
        self.joblets.get_mut(&id)?.running.as_mut()?.asked = true;
        self.suspensions.asked += 1;
        Some(id)
    }

    /// A joblet's work stands still: its cores are idle, and it waits at its rank until [`Executor::start`] gives it
    /// cores again. False where nobody wants it any more: it is forgotten, and its work is to be stopped.
    pub fn suspended(&mut self, now: Duration, id: JobletId) -> bool {
        let Some(joblet) = self.joblets.get_mut(&id) else {
            return false;
        };
        let Some(running) = joblet.running.take() else {
            return true;
        };
        let Some(first) = joblet.waiters.first() else {
            self.unwanted -= 1;
            self.drop_joblet(id);
            self.free(running);
            return false;
        };
        joblet.suspended = Some(running.cores);
        self.suspensions.suspended += 1;
        let (kind, core_time) = (joblet.step.kind, running.core_time(now));
        for rank in joblet.waiters.iter() {
            let Some(job) = self.jobs.get_mut(&rank.job) else {
                continue;
            };
            job.suspend(kind, core_time, now);
            let class = usize::from(rank.class);
            self.queued[class] += 1;
            self.work[class] += job.expected_run();
        }
        self.scheduler.push(kind.index(), first, id);
        self.free(running);
        true
    }
}
