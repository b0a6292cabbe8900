// SPDX-License-Identifier: Apache-2.0
//! As many cores for the service as its latency needs, then as much frequency.
//!
//! ```text
//!   slack = 1 - p95 / target        < 5 %, or the use foreseen is over the limit ──> a core more, then frequency
//!                                   > 20 %, and use under the limit for a while  ──> frequency, then a core less
//! ```
//! PARTIES (Chen, Delimitrou and Martínez, *PARTIES: QoS-Aware Resource Partitioning for Multiple Interactive
//! Services*, ASPLOS 2019): the two shares of slack, half a second between two looks at the latency, and that
//! what did not help is taken back. Latency tells late, so the CPU use of the last tick, drawn on by its trend,
//! acts first; the limits for that are [`learned`] from the latency that came of them.

mod learned;

use std::time::Duration;

use self::learned::Learned;
use super::places::{Places, wide};
use super::sets::Sets;
use super::silence::{Heard, Silence};
use super::{CorePlan, Cores, Reason, Refused, Seen, check_jobs, check_range};
use crate::jobs::Job;
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
    /// Less slack than this: more for the service. PARTIES has 5 %; while use is steady, two fifths of it will do.
    pub tight: f64,
    /// More slack than this: less for the service. PARTIES has 20 %.
    pub loose: f64,
    /// After a change, latency tells nothing for so long: what was measured before then is not acted on. PARTIES looks
    /// every 500 ms.
    pub settle: Duration,
    /// The latency is of the requests of so long a time. Until so much after a change it is of older ones, too: they
    /// cannot show that a core more did not help, or that one less is enough. Nothing: it is of those of the moment.
    pub window: Duration,
    /// Over so long must use have been low before the service loses a core. Of our own choice: more than one tick of
    /// 50 ms, so that a single quiet one costs nothing, and no more than two; a tick that is longer is enough alone.
    pub calm: Duration,
    /// The use foreseen is that of now and so many times what it grew in the last tick. More of it acts on a step
    /// that has only begun; too much takes cores for steps that are small.
    pub trend: f64,
    /// How many steps there are between the lowest frequency and the highest; with 0 frequency is no matter of
    /// this policy.
    pub frequency_steps: u32,
    /// Somebody measures the latency: when that is not known, use alone is not enough to go by.
    pub measured: bool,
    /// When nothing is known of the service, it keeps what it has for so long, and then has all.
    pub patience: Duration,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            least: Cores::from([0]),
            elastic: Cores::from([1]),
            batch: Cores::from([2, 3]),
            target: Duration::from_micros(1500),
            tight: 0.05,
            loose: 0.2,
            settle: Duration::from_millis(500),
            window: Duration::from_secs(10),
            calm: Duration::from_millis(75),
            trend: 0.3,
            frequency_steps: 0,
            measured: false,
            patience: Duration::from_secs(2),
        }
    }
}

impl Params {
    /// # Errors
    /// A set of cores is empty and not `batch`, has cores that the machine does not have or that another set has,
    /// the target is nothing, or the shares of slack are not above 0, at most 1 and in this order; or a job is there
    /// twice or has no threads.
    pub fn check(&self, machine: &Cores, jobs: &[Job]) -> Result<(), Refused> {
        check_jobs(jobs)?;
        self.sets().check(machine)?;
        if self.target.is_zero() {
            return Err(Refused::new("target", "is nothing"));
        }
        check_range("loose", self.loose, 1.0)?;
        check_range("tight", self.tight, self.loose)?;
        if !(self.trend >= 0.0 && self.trend.is_finite()) {
            return Err(Refused::new("trend", "is not a number from 0 on"));
        }
        Ok(())
    }

    fn sets(&self) -> Sets<'_> {
        Sets {
            least: &self.least,
            elastic: &self.elastic,
            batch: &self.batch,
        }
    }
}

/// Use is about the same within this share of it.
const STEADY: f64 = 0.2;

/// Of `tight`, what is left of it while use is steady. PARTIES sees load grow only by the latency, and its margin has
/// to last until more helps; here use tells of that, and the margin is for the latency's own noise. Of our own choice.
const STEADY_TIGHT: f64 = 0.4;

/// What was changed last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Move {
    More,
    Less,
}

/// A change whose outcome is not known yet.
#[derive(Clone, Copy, Debug)]
struct Trial {
    what: Move,
    p95: Option<Duration>,
    /// The service's use and elastic cores before it.
    cpu: f64,
    given: usize,
    steady: bool,
}

/// What the service has, what was tried and what was learned of it.
#[derive(Debug)]
pub struct LatencySlack {
    params: Params,
    jobs: Vec<Job>,
    places: Places,
    silence: Silence,
    learned: Learned,
    /// How many elastic cores the service has.
    given: usize,
    /// Of `frequency_steps`.
    frequency: u32,
    /// When `given` or `frequency` changed last.
    changed: Nanos,
    trial: Option<Trial>,
    /// More did not help: not again before.
    helpless_until: Nanos,
    last_cpu: Option<f64>,
    /// Use of late.
    smooth: f64,
    /// Since when it has been about the same, with the same cores.
    steady_since: Nanos,
    /// Ticks since the last change.
    ticks: u32,
    /// When it was looked at last.
    looked: Nanos,
    /// Since when use has been low.
    low_since: Option<Nanos>,
}

impl LatencySlack {
    /// The service starts with all it may have.
    ///
    /// # Errors
    /// As [`Params::check`].
    pub fn new(params: Params, machine: &Cores, jobs: &[Job]) -> Result<Self, Refused> {
        params.check(machine, jobs)?;
        let most = params.batch.len() + params.elastic.len();
        Ok(Self {
            given: params.elastic.len(),
            frequency: params.frequency_steps,
            learned: Learned::new(params.least.len(), params.elastic.len()),
            jobs: jobs.iter().map(|job| wide(job, most)).collect(),
            params,
            places: Places::default(),
            silence: Silence::default(),
            changed: Nanos::default(),
            trial: None,
            helpless_until: Nanos::default(),
            last_cpu: None,
            smooth: 0.0,
            steady_since: Nanos::default(),
            ticks: 0,
            looked: Nanos::default(),
            low_since: None,
        })
    }

    /// See [`Params::target`].
    pub(super) fn target(&self) -> Duration {
        self.params.target
    }

    pub(super) fn plan(&mut self, seen: &Seen) -> CorePlan {
        let reason = self.resize(seen);
        let params = &self.params;
        let divided = params
            .sets()
            .divide(self.given, &mut self.places, &self.jobs, seen);
        CorePlan {
            service: divided.service,
            speed: match params.frequency_steps {
                0 => seen.pressed.then_some(1.0),
                steps => Some(f64::from(self.frequency) / f64::from(steps)),
            },
            jobs: divided.jobs,
            reason: if divided.no_jobs {
                Reason::NoJobs
            } else {
                reason
            },
            ..CorePlan::default()
        }
    }

    fn resize(&mut self, seen: &Seen) -> Reason {
        let (now, cpu) = (seen.now, seen.cpu());
        let heard = seen.tells(self.params.measured);
        match self.silence.hear(now, heard, self.params.patience) {
            Heard::NothingYet => return Reason::Held,
            Heard::NothingForLong => return self.give_all(now, Reason::Safe),
            Heard::Something => {}
        }
        self.ticks = self.ticks.saturating_add(1);
        let foreseen = self.foresee(now, cpu);
        self.watch_low(now, foreseen);
        if seen.pressed {
            return self.give_all(now, Reason::Refused);
        }
        let slack = seen.p95.map(|p95| self.slack(p95));
        let settled = seen.p95_at.since(self.changed) >= self.params.settle;
        // Whether less is enough is for the latency to tell, but where the cores are full.
        let tries_less = self.trial.is_some_and(|trial| trial.what == Move::Less);
        let limit = match seen.p95 {
            Some(_) if tries_less => self.learned.full(self.given),
            _ => self.learned.up(self.given),
        };
        if foreseen.is_some_and(|use_| use_ > limit) && self.may_grow() {
            return self.grow(now, Reason::Busy, seen.p95);
        }
        match slack.filter(|_| settled) {
            Some(slack) => self.by_latency(seen, slack),
            None if seen.p95.is_none() => self.by_use(seen),
            None => Reason::Same,
        }
    }

    fn slack(&self, p95: Duration) -> f64 {
        1.0 - p95.as_secs_f64() / self.params.target.as_secs_f64()
    }

    /// The use that the next tick will see.
    fn foresee(&mut self, now: Nanos, cpu: Option<f64>) -> Option<f64> {
        let cpu = cpu?;
        let Some(last) = self.last_cpu.replace(cpu) else {
            (self.smooth, self.steady_since) = (cpu, self.changed);
            return Some(cpu);
        };
        if (cpu - self.smooth).abs() <= STEADY * self.smooth {
            self.smooth = 0.7 * self.smooth + 0.3 * cpu;
            return Some(self.smooth);
        }
        (self.smooth, self.steady_since) = (cpu, now);
        Some(cpu + self.params.trend * (cpu - last).max(0.0))
    }

    /// Whether the latency of late came of the use of late, so that there is something to learn.
    fn is_steady(&self, now: Nanos) -> bool {
        now.since(self.steady_since) >= self.params.settle
    }

    fn by_latency(&mut self, seen: &Seen, slack: f64) -> Reason {
        let now = seen.now;
        let steady = self.is_steady(now);
        let tight = slack < self.params.tight * if steady { STEADY_TIGHT } else { 1.0 };
        let whole = seen.p95_at.since(self.changed) >= self.params.window;
        let helped = self.judge(seen.p95, tight, steady, whole);
        if !helped {
            self.helpless_until = now.after(self.params.settle * 20);
            self.shrink(now, None);
            return Reason::Reverted;
        }
        if tight {
            if now < self.helpless_until {
                return Reason::Same;
            }
            return if self.may_grow() {
                self.grow(now, Reason::Tight, seen.p95)
            } else {
                Reason::Same
            };
        }
        if !whole {
            return Reason::Same;
        }
        if steady {
            self.learned.was_enough(self.given, self.smooth, slack);
        }
        if slack <= self.params.loose {
            return Reason::Same;
        }
        self.calm_down(seen, Reason::Loose)
    }

    /// Without latency there is only use.
    fn by_use(&mut self, seen: &Seen) -> Reason {
        self.trial = None;
        self.calm_down(seen, Reason::Calm)
    }

    /// Whether the last change may stay as it is. While the latency is not `whole`, as [`Params::window`] has it, only
    /// what speaks against the older requests counts; the rest is judged later.
    fn judge(&mut self, p95: Option<Duration>, tight: bool, steady: bool, whole: bool) -> bool {
        let Some(trial) = self.trial else {
            return true;
        };
        let better = |before: Duration| p95.is_some_and(|p95| p95 < before.mul_f64(0.95));
        let helped = !tight || trial.p95.is_none_or(better);
        let tells = match trial.what {
            Move::Less => tight,
            Move::More => helped,
        };
        if !whole && !tells {
            return true;
        }
        self.trial = None;
        match trial.what {
            Move::Less => {
                // What is tight now goes back in the next lines of `by_latency`.
                if steady {
                    self.learned.tried_less(trial.given, trial.cpu, !tight);
                }
                true
            }
            Move::More => {
                if helped && trial.steady && trial.given < self.given {
                    self.learned.was_tight(trial.given, trial.cpu);
                }
                helped
            }
        }
    }

    /// A tick in which use was low was so from its beginning.
    fn watch_low(&mut self, now: Nanos, foreseen: Option<f64>) {
        let began = std::mem::replace(&mut self.looked, now).max(self.changed);
        let highest = self.learned.down(self.given);
        self.low_since = if foreseen.is_some_and(|use_| use_.max(self.smooth) < highest) {
            self.low_since.or(Some(began))
        } else {
            None
        };
    }

    fn calm_down(&mut self, seen: &Seen, reason: Reason) -> Reason {
        let now = seen.now;
        let calm = |since: Nanos| now.since(since) >= self.params.calm;
        if !self.low_since.is_some_and(calm) || (self.given == 0 && self.frequency == 0) {
            return Reason::Same;
        }
        self.shrink(now, seen.p95.or(Some(Duration::ZERO)));
        reason
    }

    fn may_grow(&self) -> bool {
        self.given < self.params.elastic.len() || self.frequency < self.params.frequency_steps
    }

    /// Cores first, then frequency.
    fn grow(&mut self, now: Nanos, reason: Reason, p95: Option<Duration>) -> Reason {
        if let Some(trial) = self.trial.take_if(|trial| trial.what == Move::Less) {
            // Later it is a step of the load, which tells nothing of what was tried.
            if self.ticks <= 2 {
                self.learned.tried_less(trial.given, trial.cpu, false);
            }
        }
        let by_latency = reason == Reason::Tight;
        let trial = Trial {
            what: Move::More,
            p95,
            cpu: self.smooth,
            given: self.given,
            steady: self.is_steady(now),
        };
        // A step more before the last was judged is part of that trial.
        self.trial = by_latency.then(|| self.trial.unwrap_or(trial));
        if self.given < self.params.elastic.len() {
            self.given += 1;
        } else {
            self.frequency += 1;
        }
        self.change(now);
        reason
    }

    /// Frequency first, then cores; a trial where `p95` is told.
    fn shrink(&mut self, now: Nanos, p95: Option<Duration>) {
        if self.frequency > 0 {
            self.frequency -= 1;
        } else if self.given > 0 {
            self.trial = p95.map(|p95| Trial {
                what: Move::Less,
                p95: Some(p95),
                cpu: self.smooth,
                given: self.given,
                steady: self.is_steady(now),
            });
            self.given -= 1;
        }
        self.change(now);
    }

    fn change(&mut self, now: Nanos) {
        self.changed = now;
        self.ticks = 0;
        self.last_cpu = None;
        self.low_since = None;
    }

    fn give_all(&mut self, now: Nanos, reason: Reason) -> Reason {
        if self.may_grow() {
            self.given = self.params.elastic.len();
            self.frequency = self.params.frequency_steps;
            self.change(now);
        }
        self.trial = None;
        self.changed = now;
        reason
    }
}

#[cfg(test)]
mod tests;
