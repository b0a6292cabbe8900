// SPDX-License-Identifier: Apache-2.0
//! Jobs and how far they are.

use weir_governor::cores::{Act, CorePlan, JobPlan};
use weir_governor::jobs::State;

use super::jobs::Scaling;
use super::params::Params;

/// One job.
#[derive(Debug, Clone)]
struct Job {
    scaling: Scaling,
    /// Core seconds of one thread that are left.
    left: f64,
    /// Seconds of starting or going on that are left.
    starting: f64,
    state: State,
    began: f64,
    ended: Option<f64>,
    threads: f64,
}

/// The jobs of one node.
#[derive(Debug, Clone)]
pub(super) struct Batch {
    jobs: Vec<Job>,
    antagonism: f64,
    antagonism_shared: f64,
    resume_s: f64,
}

impl Batch {
    /// `work`: core seconds of each job with one thread.
    pub(super) fn new(scaling: &[Scaling], work: &[f64], params: &Params) -> Self {
        let of = |(scaling, left): (&Scaling, &f64)| Job {
            scaling: scaling.clone(),
            left: *left,
            starting: params.start_s,
            state: State::Waiting,
            began: 0.0,
            ended: None,
            threads: 1.0,
        };
        Self {
            jobs: scaling.iter().zip(work).map(of).collect(),
            antagonism: params.antagonism,
            antagonism_shared: params.antagonism_shared,
            resume_s: params.resume_s,
        }
    }

    pub(super) fn states(&self) -> Vec<State> {
        self.jobs.iter().map(|job| job.state).collect()
    }

    pub(super) fn all_ended(&self) -> bool {
        self.jobs.iter().all(|job| job.state.has_ended())
    }

    /// When the job began, and when it ended.
    pub(super) fn times(&self, job: usize) -> (f64, Option<f64>) {
        (self.jobs[job].began, self.jobs[job].ended)
    }

    /// Does what the plan says.
    pub(super) fn obey(&mut self, now: f64, plan: &CorePlan) {
        for (job, planned) in self.jobs.iter_mut().zip(&plan.jobs) {
            match planned.act {
                Act::Run => {
                    match job.state {
                        State::Waiting => {
                            job.began = now;
                            job.threads = f64::from(planned.threads);
                        }
                        State::Paused => job.starting += self.resume_s,
                        _ => {}
                    }
                    job.state = State::Running;
                }
                Act::Pause => job.state = State::Paused,
                Act::Wait | Act::Done => {}
            }
        }
    }

    /// How many antagonists the other jobs are for this one.
    fn others(&self, job: usize, plan: &CorePlan) -> f64 {
        let of = |other: usize| {
            let apart = plan.jobs[other]
                .cores
                .shared(&plan.jobs[job].cores)
                .is_empty();
            match self.jobs[other].state {
                State::Running if other == job => 0.0,
                State::Running if apart => self.antagonism,
                State::Running => self.antagonism_shared,
                _ => 0.0,
            }
        };
        (0..self.jobs.len()).map(of).sum()
    }

    /// Lets those that run go on until `now + dt`; the core seconds that they use.
    pub(super) fn advance(&mut self, now: f64, dt: f64, plan: &CorePlan) -> f64 {
        if plan.jobs.len() != self.jobs.len() {
            // Nothing has been planned yet.
            return 0.0;
        }
        let mut used = 0.0;
        let load = |core: u32| -> f64 {
            let on = |(job, planned): (&Job, &JobPlan)| {
                let here = job.state == State::Running && planned.cores.has(core);
                if here {
                    job.threads / planned.cores.len() as f64
                } else {
                    0.0
                }
            };
            self.jobs.iter().zip(&plan.jobs).map(on).sum()
        };
        // A core that more threads want than it is has a part of it for each.
        let share = |(job, planned): (&Job, &JobPlan)| -> f64 {
            let wanted = job.threads / planned.cores.len() as f64;
            let cores = planned.cores.numbers().iter();
            cores.map(|core| wanted / load(*core).max(1.0)).sum()
        };
        let shares: Vec<f64> = self.jobs.iter().zip(&plan.jobs).map(share).collect();
        let others: Vec<f64> = (0..self.jobs.len())
            .map(|job| self.others(job, plan))
            .collect();
        for ((job, share), others) in self.jobs.iter_mut().zip(shares).zip(others) {
            if job.state != State::Running {
                continue;
            }
            let starting = job.starting.min(dt);
            job.starting -= starting;
            let share = share.min(job.threads);
            used += (dt - starting) * share;
            let slowdown = job.scaling.slowdown(others);
            let speed = job.scaling.speed(share) / slowdown;
            let done = (dt - starting) * speed;
            if done < job.left {
                job.left -= done;
            } else {
                job.ended = Some(now + starting + job.left / speed);
                job.left = 0.0;
                job.state = State::Finished;
            }
        }
        used
    }
}
