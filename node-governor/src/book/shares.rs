// SPDX-License-Identifier: Apache-2.0
//! Of the service's cores and the batch jobs.

mod names;

use std::time::Duration;

use crate::cores::{Ceilings, CorePlan, Cores, Limits, Reason};
use crate::jobs::State;
use crate::jobs::runner::Facts;
use crate::jobs::spec::Spec;
use crate::sensed::{Nanos, Resources, Row, Sensed};
pub use names::{STATES, queue_name, reason_name, state_name, state_named};

/// Who has what, and how far the jobs are.
#[derive(Clone, Debug, Default)]
pub struct SharesBook {
    /// Cores that the machine has, for whoever draws them.
    pub machine: Cores,
    /// What the service's latency shall stay under, where the policy has a target.
    pub target: Option<Duration>,
    /// The service's, as planned.
    pub service: Cores,
    /// Services beside it, by name, with their cores as planned.
    pub others: Vec<(String, Cores)>,
    /// Why: the last reason to have them or to keep them, and never [`Reason::Same`] after another one.
    pub reason: Reason,
    /// The mesh refuses requests or is about to.
    pub pressed: bool,
    /// Cores that the service uses; none where that is not known.
    pub cpu: Option<f64>,
    /// What it shares with the jobs beside cores.
    pub resources: Resources,
    /// What of that the jobs may have, as planned.
    pub ceilings: Ceilings,
    /// What the mesh said last.
    pub row: Option<Row>,
    /// Thousandths of a core that were reported to the mesh; none where nothing is.
    pub capacity_millicores: Option<u32>,
    /// Times that the service's cores changed.
    pub moves: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// In their order.
    pub jobs: Vec<JobBook>,
    /// Governors of other nodes that are asked for jobs there.
    pub peers: Vec<PeerBook>,
    /// When it was decided last.
    pub last: Option<Nanos>,
}

/// One job.
#[derive(Clone, Debug, Default)]
pub struct JobBook {
    /// Its name.
    pub name: String,
    /// `short`, `medium` or `long`.
    pub queue: &'static str,
    /// How far it has come.
    pub state: State,
    /// Where it runs; none while it does not.
    pub cores: Cores,
    /// Where it shall run, or ran last.
    pub planned: Cores,
    /// It was started with so many, or will be.
    pub threads: u32,
    /// Time in which it was running, as far as this governor has seen it.
    pub ran: Duration,
    /// What it may have beside cores, as planned.
    pub limits: Limits,
    /// Time in which it was frozen.
    pub paused: Duration,
    /// Times that it was frozen.
    pub pauses: u64,
    /// CPU time that it has used, where that is known.
    pub cpu: Option<Duration>,
    /// CPU time that it takes in all, where that is configured.
    pub takes: Option<Duration>,
    /// How it ended: an exit code, or 128 and the signal.
    pub code: Option<i32>,
    /// What went wrong.
    pub trouble: Option<String>,
}

/// The governor of another node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerBook {
    /// Name of its node.
    pub node: String,
    /// Its last answer was a good one.
    pub answers: bool,
    /// Its jobs that jobs here wait for, and whether each has ended; none while that is not known.
    pub jobs: Vec<(String, Option<bool>)>,
}

/// How far all jobs are.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// There are so many.
    pub jobs: usize,
    /// Of these have ended, well or not.
    pub ended: usize,
    /// Of these not well.
    pub failed: usize,
    /// Share of the CPU time that all take, 0 to 1; none unless it is known of every job. One that has ended
    /// counts as done, whatever it took.
    pub share: Option<f64>,
}

impl SharesBook {
    /// Nothing has happened. Whoever knows them sets `machine`, `target` and the names of `others`, which stay as they
    /// are.
    pub fn new(specs: &[Spec]) -> Self {
        let job = |spec: &Spec| JobBook {
            name: spec.job.name.clone(),
            queue: queue_name(spec.job.queue),
            threads: spec.job.threads,
            takes: spec.takes,
            ..JobBook::default()
        };
        Self {
            jobs: specs.iter().map(job).collect(),
            ..Self::default()
        }
    }

    /// Once a tick, with what was sensed in it and the plan made of that. The time since the last call counts for
    /// the state in which a job is now, for it has been in it since the last plan was carried out; that of one
    /// that has ended for the state before.
    pub fn decided(&mut self, now: Nanos, sensed: &Sensed, plan: &CorePlan, pressed: bool) {
        let passed = self.last.map(|last| now.since(last));
        for (index, job) in self.jobs.iter_mut().enumerate() {
            let state = sensed.jobs.get(index).copied().unwrap_or_default();
            job.passed(state, passed);
            job.limits = plan
                .jobs
                .get(index)
                .map(|job| job.limits)
                .unwrap_or_default();
            if let Some(planned) = plan.jobs.get(index).filter(|job| !job.cores.is_empty()) {
                job.planned.clone_from(&planned.cores);
            }
            match state {
                // One that is to be frozen runs where it was last told to until it is.
                State::Running => job.cores.clone_from(&job.planned),
                _ => job.cores = Cores::NONE,
            }
        }
        self.moves += u64::from(passed.is_some() && self.service != plan.service);
        self.service.clone_from(&plan.service);
        for ((_, cores), planned) in self.others.iter_mut().zip(&plan.others) {
            cores.clone_from(planned);
        }
        if plan.reason != Reason::Same {
            self.reason = plan.reason;
        }
        self.pressed = pressed;
        self.cpu = sensed.service_cpu.filter(|cpu| cpu.is_finite());
        self.row = sensed.row;
        (self.resources, self.ceilings) = (sensed.resources, plan.ceilings);
        self.last = Some(now);
    }

    /// Whenever the runner has looked; a job that is not there is none.
    pub fn job(&mut self, index: usize, facts: &Facts) {
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        if facts.threads > 0 {
            job.threads = facts.threads;
        }
        job.cpu = facts.cpu;
        job.code = facts.code;
        if job.trouble != facts.trouble {
            job.trouble.clone_from(&facts.trouble);
        }
    }

    /// How far all jobs are.
    pub fn progress(&self) -> Progress {
        let count = |of: fn(State) -> bool| self.jobs.iter().filter(|job| of(job.state)).count();
        Progress {
            jobs: self.jobs.len(),
            ended: count(State::has_ended),
            failed: count(|state| state == State::Failed),
            share: self.share(),
        }
    }

    fn share(&self) -> Option<f64> {
        let (mut done, mut all) = (0.0, 0.0);
        for job in &self.jobs {
            let takes = job.takes?.as_secs_f64();
            done += takes * job.share()?;
            all += takes;
        }
        (all > 0.0).then(|| done / all)
    }
}

impl JobBook {
    fn passed(&mut self, state: State, time: Option<Duration>) {
        let Some(time) = time else {
            self.state = state;
            return;
        };
        self.pauses += u64::from(state == State::Paused && self.state != State::Paused);
        let spent = if state.has_ended() { self.state } else { state };
        match spent {
            State::Running => self.ran += time,
            State::Paused => self.paused += time,
            _ => {}
        }
        self.state = state;
    }

    /// How far it is, 0 to 1, where that is known. What has not ended is not done, however long it took.
    pub fn share(&self) -> Option<f64> {
        if self.state.has_ended() {
            return Some(1.0);
        }
        let takes = self.takes.filter(|takes| !takes.is_zero())?;
        let used = match self.state {
            State::Waiting => self.cpu.unwrap_or_default(),
            _ => self.cpu?,
        };
        Some((used.as_secs_f64() / takes.as_secs_f64()).min(0.99))
    }
}

#[cfg(test)]
mod tests;
