// SPDX-License-Identifier: Apache-2.0
//! Two places for jobs, or one, and three queues before them.

use super::{Act, Cores, JobPlan, Seen};
use crate::jobs::{Job, Queue, State};

/// The job at each place. The large place is always there, if at all; the small one comes and goes.
///
/// Document 004, part 4.2: long jobs at the large place and short ones at the small place, each in the order of
/// its queue, then those of the next queue; when none waits, the large place takes over the small one's job.
///
/// Where the machine has no cores for a large place, all jobs go through the small one.
///
/// Of our own: a job that had cores and still waits, as one that cannot be started or whose cgroup is empty, makes
/// room for those that have not been tried. Where there is none of these, those that did not come have the places in
/// turn, so that the small one is not held to be free for good while one of them may come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) large: Option<usize>,
    pub(super) small: Option<usize>,
    /// Waited when they got these cores.
    asked: Vec<usize>,
    /// Did not come when they were asked to; who was asked last is last.
    missed: Vec<usize>,
}

impl Places {
    /// Leaves out what has ended, and fills what is empty. `large` are the large place's cores.
    pub(super) fn fill(&mut self, jobs: &[Job], seen: &Seen, large: &Cores) {
        let waits = |job: &usize| seen.job(*job) == State::Waiting;
        let asked = std::mem::take(&mut self.asked);
        self.missed.retain(|job| waits(job) && !asked.contains(job));
        self.missed.extend(asked.into_iter().filter(waits));
        let stays = |job: &usize| !seen.job(*job).has_ended() && !self.missed.contains(job);
        self.large = self.large.filter(stays);
        self.small = self.small.filter(stays);
        if self.large.is_none() && !large.is_empty() {
            let next = self.next([Queue::Long, Queue::Medium, Queue::Short], jobs, seen);
            self.large = next.or_else(|| self.small.take());
        }
        if self.small.is_none() {
            self.small = self.next([Queue::Short, Queue::Medium, Queue::Long], jobs, seen);
        }
        if self.large.is_none() && !large.is_empty() {
            self.large = self.next_missed();
        }
        if self.small.is_none() {
            self.small = self.next_missed();
        }
    }

    fn next_missed(&self) -> Option<usize> {
        let free = |job: &usize| self.large != Some(*job) && self.small != Some(*job);
        self.missed.iter().copied().find(free)
    }

    /// The first of these queues that has not ended, has not missed its turn and is at no place. One that was paused
    /// by somebody else and has no place is a candidate, too.
    fn next(&self, queues: [Queue; 3], jobs: &[Job], seen: &Seen) -> Option<usize> {
        let free = |index: &usize| {
            !seen.job(*index).has_ended()
                && !self.missed.contains(index)
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
        &mut self,
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
                ..JobPlan::default()
            }
        };
        let plans: Vec<JobPlan> = jobs.iter().enumerate().map(of).collect();
        let asked = |job: &usize| plans[*job].act == Act::Run && seen.job(*job) == State::Waiting;
        self.asked = (0..jobs.len()).filter(asked).collect();
        plans
    }
}

/// The job with threads for all cores that it may have in the end, unless it is one that gains nothing by more.
pub(super) fn wide(job: &Job, cores: usize) -> Job {
    let cores = u32::try_from(cores).unwrap_or(u32::MAX);
    let threads = match job.queue {
        Queue::Short => job.threads,
        Queue::Medium | Queue::Long => job.threads.max(cores),
    };
    Job {
        threads,
        ..job.clone()
    }
}

/// A job with cores runs; one without them waits or is paused.
pub(super) fn act(seen: &Seen, job: usize, cores: &Cores) -> Act {
    match seen.job(job) {
        state if state.has_ended() => Act::Done,
        _ if !cores.is_empty() => Act::Run,
        State::Waiting => Act::Wait,
        _ => Act::Pause,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn jobs(queues: &[Queue]) -> Vec<Job> {
        let job = |(index, queue): (usize, &Queue)| Job {
            name: format!("job {index}"),
            queue: *queue,
            threads: 1,
        };
        queues.iter().enumerate().map(job).collect()
    }

    /// Who has cores after each of so many ticks; those of `absent` never start, the others at once.
    fn runs(
        places: &mut Places,
        states: &mut [State],
        absent: &[usize],
        large: &Cores,
        ticks: usize,
    ) -> Vec<Vec<usize>> {
        let jobs = jobs(&vec![Queue::Medium; states.len()]);
        let tick = |_| {
            let seen = Seen {
                jobs: states.to_vec(),
                ..Seen::default()
            };
            places.fill(&jobs, &seen, large);
            let plans = places.plan(&jobs, &seen, large, &[1].into());
            let run: Vec<usize> = (0..jobs.len())
                .filter(|job| plans[*job].act == Act::Run)
                .collect();
            for job in run.iter().filter(|job| !absent.contains(job)) {
                states[*job] = State::Running;
            }
            run
        };
        (0..ticks).map(tick).collect()
    }

    #[test]
    fn a_job_that_does_not_come_makes_room_and_has_a_place_when_it_comes_after_all() {
        for large in [Cores::NONE, [2, 3].into()] {
            let mut places = Places::default();
            let mut states = [State::Waiting; 4];
            runs(&mut places, &mut states, &[0, 1], &large, 3);
            for job in [2, 3] {
                let all = runs(&mut places, &mut states, &[0, 1], &large, 3);
                assert!(all.iter().all(|run| run.contains(&job)), "{job}: {all:?}");
                states[job] = State::Finished;
            }
            let all = runs(&mut places, &mut states, &[0, 1], &large, 4);
            for job in [0, 1] {
                assert!(all.iter().any(|run| run.contains(&job)), "{job}: {all:?}");
            }
            // Its cgroup has processes by now.
            states[0] = State::Running;
            for run in runs(&mut places, &mut states, &[1], &large, 4) {
                assert!(run.contains(&0), "{run:?}");
            }
        }
    }

    #[test]
    fn a_job_that_came_keeps_its_place_though_others_did_not() {
        let mut places = Places::default();
        let mut states = [State::Waiting; 3];
        let all = runs(&mut places, &mut states, &[0, 1], &Cores::NONE, 6);
        assert_eq!(all[2..], [[2], [2], [2], [2]]);
    }
}
