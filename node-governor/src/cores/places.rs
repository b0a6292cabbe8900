// SPDX-License-Identifier: Apache-2.0
//! Two places for jobs, or one, and three queues before them.

use super::{Act, Cores, JobPlan, Seen};
use crate::jobs::{Job, Queue};

/// The job at each place. The large place is always there, if at all; the small one comes and goes.
///
/// Document 004, part 4.2: long jobs at the large place and short ones at the small place, each in the order of
/// its queue, then those of the next queue; when none waits, the large place takes over the small one's job.
///
/// Where the machine has no cores for a large place, all jobs go through the small one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) large: Option<usize>,
    pub(super) small: Option<usize>,
}

impl Places {
    /// Leaves out what has ended, and fills what is empty. `large` are the large place's cores.
    pub(super) fn fill(&mut self, jobs: &[Job], seen: &Seen, large: &Cores) {
        let ended = |job: &usize| seen.job(*job).has_ended();
        self.large = self.large.filter(|job| !ended(job));
        self.small = self.small.filter(|job| !ended(job));
        if self.large.is_none() && !large.is_empty() {
            let next = self.next([Queue::Long, Queue::Medium, Queue::Short], jobs, seen);
            self.large = next.or_else(|| self.small.take());
        }
        if self.small.is_none() {
            self.small = self.next([Queue::Short, Queue::Medium, Queue::Long], jobs, seen);
        }
    }

    /// The first of these queues that has not ended and is at no place. One that was paused by somebody else
    /// and has no place is a candidate, too.
    fn next(&self, queues: [Queue; 3], jobs: &[Job], seen: &Seen) -> Option<usize> {
        let free = |index: &usize| {
            !seen.job(*index).has_ended()
                && self.large != Some(*index)
                && self.small != Some(*index)
        };
        queues.into_iter().find_map(|queue| {
            let of_queue = (0..jobs.len()).filter(|index| jobs[*index].queue == queue);
            of_queue.into_iter().find(free)
        })
    }

    /// What each job does where the places have these cores.
    pub(super) fn plan(
        &self,
        jobs: &[Job],
        seen: &Seen,
        large: &Cores,
        small: &Cores,
    ) -> Vec<JobPlan> {
        let of = |(index, job): (usize, &Job)| {
            let cores = match Some(index) {
                place if place == self.large => large.clone(),
                place if place == self.small => small.clone(),
                _ => Cores::NONE,
            };
            JobPlan {
                act: act(seen, index, &cores),
                cores,
                threads: job.threads,
            }
        };
        jobs.iter().enumerate().map(of).collect()
    }
}

/// A job with cores runs; one without them waits or is paused.
pub(super) fn act(seen: &Seen, job: usize, cores: &Cores) -> Act {
    use crate::jobs::State;
    match seen.job(job) {
        state if state.has_ended() => Act::Done,
        _ if !cores.is_empty() => Act::Run,
        State::Waiting => Act::Wait,
        _ => Act::Pause,
    }
}
