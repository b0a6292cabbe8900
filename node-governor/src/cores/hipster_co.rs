// SPDX-License-Identifier: Apache-2.0
//! Cores and frequency of the service at once: those with which jobs have got on best at this load, within the target.
//!
//! ```text
//!  ladder:  (1 core, slow) ─ (1 core, fast) ─ (2 cores, slow) ─ … ─ (all, fast)      by what they can do
//!             ^ each second a rung up or down by the tail, or the one that has paid at this load: learner
//!  jobs have the other cores, at their highest frequency
//! ```
//! HipsterCo of Hipster ([`crate::learner`], with its source), section III there: the reward of a rung that meets the target
//! is more the more jobs get done. All of it is from memory, for the paper's text was not at hand: the heuristic's zones are
//! those of [`crate::frequency::octopus_man`], the step of a second and the 500 s of learning are the paper's, as we
//! remember them.
//!
//! Otherwise than there: the paper counts the instructions of jobs and of the service, as a share of the most that the
//! cores can do. Here it is the CPU time that jobs have used, as a share of the cores that they may have, which are at their
//! highest frequency: how much a job gets done in that time is not known. Cores are alike, and what power they take is not
//! measured. Rungs are in the order of cores times frequency, of those that can do as much the one with less power first,
//! the cube of the frequency; the lowest frequency counts for that as half of the highest, whatever it is. Of our own:
//! while the mesh refuses requests or there is no job for the elastic cores, the service has all, at its highest frequency,
//! and nothing is learnt; a rung that the heuristic leads to and that was never tried at this load is tried, however much
//! was learnt; and while the tail is far from its target jobs are not left without a core. Where their CPU time is not
//! known, they count as using all that they have.

use std::time::Duration;

use super::places::{Places, wide};
use super::sets::Sets;
use super::silence::{Heard, Silence};
use super::{CorePlan, Cores, Reason, Refused, Seen, check_jobs, check_range};
use crate::frequency::octopus_man::climb;
use crate::jobs::Job;
use crate::learner::{Heed, Learner, Outcome};
use crate::sensed::Nanos;

/// Cores, target and times.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// The service's, always.
    pub least: Cores,
    /// The service's or jobs'; the service has them from the lowest number on.
    pub elastic: Cores,
    /// Jobs', always. None on a machine of two cores: then all jobs take turns on what the service leaves.
    pub batch: Cores,
    /// The 95th percentile shall stay below this.
    pub target: Duration,
    /// Above this share of the target the heuristic climbs.
    pub danger: f64,
    /// Below this share it comes down.
    pub safe: f64,
    /// Between two steps.
    pub interval: Duration,
    /// From the start, and again when the target is missed too often: the heuristic alone chooses.
    pub learning: Duration,
    /// Steps between the lowest frequency and the highest; with 0 frequency is no matter of this policy.
    pub frequency_steps: u32,
    /// When the latency is not known, all stays as it is for so long, and then the service has all.
    pub patience: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            least: Cores::from([0]),
            elastic: Cores::from([1]),
            batch: Cores::from([2, 3]),
            target: Duration::from_micros(1500),
            danger: 0.85,
            safe: 0.6,
            interval: Duration::from_secs(1),
            learning: Duration::from_secs(500),
            frequency_steps: 0,
            patience: Duration::from_secs(2),
        }
    }
}

/// Each step is tried with each number of cores.
const MOST_STEPS: u32 = 16;
/// Of the highest frequency, for the order of the ladder.
const LOWEST: f64 = 0.5;

impl Params {
    /// # Errors
    /// A set of cores is empty and not `batch`, has cores that the machine does not have or that another set has,
    /// the target or `interval` is nothing, the shares of the target are not above 0, at most 1 and in this order, or
    /// there are too many steps; or a job is there twice or has no threads.
    pub fn check(&self, machine: &Cores, jobs: &[Job]) -> Result<(), Refused> {
        check_jobs(jobs)?;
        self.sets().check(machine)?;
        let times = [("target", self.target), ("interval", self.interval)];
        if let Some((field, _)) = times.iter().find(|(_, time)| time.is_zero()) {
            return Err(Refused::new(*field, "is nothing"));
        }
        if self.frequency_steps > MOST_STEPS {
            let reason =
                format!("is more than {MOST_STEPS}: each is tried with each number of cores");
            return Err(Refused::new("frequency_steps", reason));
        }
        check_range("danger", self.danger, 1.0)?;
        check_range("safe", self.safe, self.danger)
    }

    fn sets(&self) -> Sets<'_> {
        Sets {
            least: &self.least,
            elastic: &self.elastic,
            batch: &self.batch,
        }
    }

    /// Every number of elastic cores at every frequency.
    fn ladder(&self) -> Vec<Rung> {
        let frequencies =
            |elastic| (0..=self.frequency_steps).map(move |frequency| Rung { elastic, frequency });
        let mut ladder: Vec<Rung> = (0..=self.elastic.len()).flat_map(frequencies).collect();
        let key = |rung: &Rung| {
            let cores = (self.least.len() + rung.elastic) as f64;
            let speed = LOWEST + (1.0 - LOWEST) * self.speed(*rung);
            (cores * speed, cores * speed.powi(3))
        };
        ladder.sort_by(|one, other| {
            let ((work, power), (other_work, other_power)) = (key(one), key(other));
            work.total_cmp(&other_work)
                .then(power.total_cmp(&other_power))
        });
        ladder
    }

    /// From the lowest frequency, 0, to the highest, 1.
    fn speed(&self, rung: Rung) -> f64 {
        match self.frequency_steps {
            0 => 1.0,
            steps => f64::from(rung.frequency) / f64::from(steps),
        }
    }
}

/// What the service has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Rung {
    elastic: usize,
    frequency: u32,
}

/// What the service has, and what was learnt.
#[derive(Debug)]
pub struct HipsterCo {
    params: Params,
    jobs: Vec<Job>,
    places: Places,
    silence: Silence,
    ladder: Vec<Rung>,
    learner: Learner,
    stepped: Nanos,
    /// Cores that jobs used in the ticks since then: their sum, and how many ticks.
    used: (f64, u32),
    /// Cores that jobs have by the last plan.
    granted: usize,
    /// There was none for the elastic cores.
    no_jobs: bool,
}

impl HipsterCo {
    /// The service starts with all it may have.
    ///
    /// # Errors
    /// As [`Params::check`].
    pub fn new(params: Params, machine: &Cores, jobs: &[Job]) -> Result<Self, Refused> {
        params.check(machine, jobs)?;
        let most = params.batch.len() + params.elastic.len();
        let ladder = params.ladder();
        Ok(Self {
            jobs: jobs.iter().map(|job| wide(job, most)).collect(),
            learner: Learner::new(ladder.len() - 1, params.learning),
            ladder,
            params,
            places: Places::default(),
            silence: Silence::default(),
            stepped: Nanos::default(),
            used: (0.0, 0),
            granted: 0,
            no_jobs: false,
        })
    }

    /// See [`Params::target`].
    pub(super) fn target(&self) -> Duration {
        self.params.target
    }

    pub(super) fn plan(&mut self, seen: &Seen) -> CorePlan {
        let reason = self.control(seen);
        let rung = self.ladder[self.learner.rung()];
        let sets = self.params.sets();
        let mut divided = sets.divide(rung.elastic, &mut self.places, &self.jobs, seen);
        let has_speed = self.params.frequency_steps > 0;
        divided.jobs.iter_mut().for_each(|job| job.fast = has_speed);
        self.granted = divided.jobs.iter().map(|job| job.cores.len()).sum();
        self.no_jobs = divided.no_jobs;
        CorePlan {
            service: divided.service,
            speed: match (has_speed, divided.no_jobs) {
                (false, _) => seen.pressed.then_some(1.0),
                (true, true) => Some(1.0),
                (true, false) => Some(self.params.speed(rung)),
            },
            jobs: divided.jobs,
            reason: match divided.no_jobs {
                true => Reason::NoJobs,
                false => reason,
            },
            ..CorePlan::default()
        }
    }

    fn control(&mut self, seen: &Seen) -> Reason {
        let now = seen.now;
        let latency = seen.latency();
        let ratio = latency.map(|latency| latency.div_duration_f64(self.params.target));
        let heard = self
            .silence
            .hear(now, ratio.is_some(), self.params.patience);
        let ratio = match (heard, ratio) {
            (Heard::NothingForLong, _) => return self.give_all(now, Reason::Safe),
            _ if seen.pressed => return self.give_all(now, Reason::Refused),
            _ if self.no_jobs => return self.give_all(now, Reason::NoJobs),
            (_, None) => return Reason::Held,
            (_, Some(ratio)) => ratio,
        };
        if let Some(cores) = seen.jobs_cpu.filter(|cores| cores.is_finite()) {
            self.used = (self.used.0 + cores, self.used.1 + 1);
        }
        if now.since(self.stepped) < self.params.interval {
            return Reason::Same;
        }
        self.step(now, seen.requests, ratio)
    }

    fn step(&mut self, now: Nanos, requests: u64, ratio: f64) -> Reason {
        let params = &self.params;
        let most = (params.elastic.len() + params.batch.len()) as f64;
        let used = match self.used {
            (_, 0) => self.granted as f64,
            (sum, ticks) => sum / f64::from(ticks),
        };
        let outcome = Outcome {
            requests,
            ratio,
            gain: (used / most).clamp(0.0, 1.0),
        };
        let (rung, top) = (self.learner.rung(), self.learner.top());
        let by_rule = climb(rung, top, ratio, params.danger, params.safe);
        let heed = match self.granted {
            0 if by_rule < rung => Heed::Always,
            _ => Heed::UntilTried,
        };
        self.learner.step(now, outcome, by_rule, heed);
        (self.stepped, self.used) = (now, (0.0, 0));
        match self.learner.rung() {
            higher if higher > rung => Reason::Tight,
            lower if lower < rung => Reason::Loose,
            _ => Reason::Same,
        }
    }

    fn give_all(&mut self, now: Nanos, reason: Reason) -> Reason {
        self.learner.give_all();
        (self.stepped, self.used) = (now, (0.0, 0));
        reason
    }
}

#[cfg(test)]
mod tests;
