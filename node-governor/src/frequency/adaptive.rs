// SPDX-License-Identifier: Apache-2.0
//! A schedule for each hot function that is derived from what its calls have needed so far.
//!
//! A call's work is what it takes at the highest frequency. A share `S(w)` of the calls is still running after the
//! work `w`. Power is taken as `f³ + 2e³`: work by the cube law, and what a core that works takes anyway, by which
//! the most efficient frequency is `e`. Of all frequencies by work done that bring the quantile's work to its end
//! within the budget, the expected energy is then least at
//!
//! ```text
//! f(w)³ = e³ + price / S(w)
//! ```
//!
//! where the price of time is the lowest that meets the budget: frequencies of the core, found by halving. Without
//! `e` this is PACE (Lorch and Smith, *Improving dynamic voltage scaling algorithms with PACE*, SIGMETRICS 2001):
//! slow while most calls still run and fast for the few that turn out long.
//!
//! The budget follows the measured tail. Without measurements it is a share of the target; without enough calls there is no schedule and all run at the highest frequency. Where not
//! even that is in time, cores without calls have it too.
//!
//! The plan sleeps until a call needs its next step, so that light loads are looked at less often.

mod schedule;

use std::time::Duration;

use crate::frequency::budget::{Budget, Feedback};
use crate::frequency::calls::{self, Call, Progress, Speed, Works};
use crate::frequency::{Choose, Frequency, Parameters, Range, Wrong, online};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::{FUNCTIONS, Nanos, Sensed};

use schedule::{Schedule, Wanted};

/// The target and what is known of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Adaptive {
    /// What the quantile of [`Tail`](crate::sensed::Tail) shall stay under. By default the second of Medeiros,
    /// chapter 4.
    pub target: Duration,
    /// The frequency at which work takes least energy, and the lowest that calls get. By default a fifth of the way
    /// up. Medeiros, observation 4, has 2.0 GHz of 1.0 to 2.6, seen with one query after the other: there a slower
    /// core also means more time at the power that the machine takes anyway. At a given rate of queries it does not,
    /// and the simulator's MODEL has least energy at 1.0 to 1.5 GHz.
    pub efficient: Frequency,
    /// No hot function runs on the core, and calls that begin have this until they are seen. As `efficient` by
    /// default: what else runs there takes least so, and a core that sleeps in C6 takes no more for it.
    pub idle: Frequency,
    /// Share of a call's time at the highest frequency that is the same at every frequency.
    pub memory: f64,
    /// Of the calls, so many shall end within the budget, and which budget that is the measured tail decides. Not the
    /// target's own: of the longest few calls too little is known to plan by.
    pub quantile: f64,
    /// Of the target, what is kept in hand: a tail that is measured over half a minute scatters.
    pub margin: f64,
    /// The budget as a share of the target until a tail is measured, and when none is any more.
    pub budget: f64,
    /// A tail that stays off the target by so much changes the budget by as much in this time. Four times what a
    /// measurement looks back, or it swings, and that costs energy.
    pub settle: Duration,
    /// A measurement older than this is none.
    pub stale: Duration,
    /// The plan sleeps at least this long.
    pub shortest_period: Duration,
    /// And at most this long.
    pub longest_period: Duration,
}

impl Default for Adaptive {
    fn default() -> Self {
        Self {
            target: Duration::from_secs(1),
            efficient: Frequency::Share(0.2),
            idle: Frequency::Share(0.2),
            memory: 0.0,
            quantile: 0.95,
            margin: 0.05,
            budget: 0.5,
            settle: Duration::from_secs(120),
            stale: Duration::from_secs(10),
            shortest_period: Duration::from_millis(10),
            longest_period: Duration::from_millis(100),
        }
    }
}

impl Adaptive {
    fn feedback(&self) -> Feedback {
        Feedback {
            target: self.target,
            margin: self.margin,
            unmeasured: self.budget,
            settle: self.settle,
            stale: self.stale,
        }
    }
}

impl Parameters for Adaptive {
    fn check(&self, node: &Node) -> Result<(), Wrong> {
        let wrong = |field, reason| Err(Wrong::new(field, reason));
        self.efficient.check("efficient", node)?;
        self.idle.check("idle", node)?;
        self.feedback().check()?;
        calls::check(self.memory, self.quantile)?;
        if self.shortest_period.is_zero() {
            return wrong("shortest_period", "must not be 0");
        }
        if self.longest_period < self.shortest_period {
            return wrong("longest_period", "must be at least shortest_period");
        }
        Ok(())
    }

    fn begin(&self, node: &Node) -> Box<dyn Choose> {
        // Schedules are made for the fastest core; others round for themselves.
        let (speed, range) = Speed::of(node, self.memory);
        Box::new(Pacing {
            parameters: *self,
            speed,
            range,
            cores: vec![Progress::new(&speed); node.cores.len()],
            works: vec![Works::default(); FUNCTIONS],
            schedules: vec![None; FUNCTIONS],
            budget: Budget::new(self.feedback()),
            scheduled: None,
            hopeless: false,
        })
    }
}

/// Schedules are made anew so often.
const RESCHEDULE: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Pacing {
    parameters: Adaptive,
    speed: Speed,
    range: Option<Range>,
    cores: Vec<Progress>,
    /// By function, as are the schedules.
    works: Vec<Works>,
    schedules: Vec<Option<Schedule>>,
    budget: Budget,
    scheduled: Option<Nanos>,
    /// There are functions that would be late at the highest frequency.
    hopeless: bool,
}

impl Pacing {
    /// Takes in what has happened since the last tick.
    fn learn(&mut self, sensed: &Sensed) {
        calls::follow(&mut self.cores, sensed, &self.speed, |function, work| {
            if let Some(works) = self.works.get_mut(function) {
                works.add(work);
            }
        });
        self.budget.follow(sensed);
    }

    fn schedule(&mut self, now: Nanos) {
        let due = self
            .scheduled
            .is_none_or(|last| now.since(last) >= RESCHEDULE);
        let Some(range) = self.range.as_ref().filter(|_| due) else {
            return;
        };
        self.scheduled = Some(now);
        let wanted = Wanted {
            efficient: self.parameters.efficient.on(range),
            quantile: self.parameters.quantile,
            budget: self.budget.seconds(),
        };
        self.hopeless = false;
        for (works, schedule) in self.works.iter().zip(&mut self.schedules) {
            if let Some(survivors) = works.survivors() {
                let found = Schedule::new(&survivors, &wanted, &self.speed, range);
                self.hopeless |= found.is_none();
                *schedule = Some(found.unwrap_or(Schedule::fastest(&self.speed)));
            }
        }
    }
}

impl Choose for Pacing {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        self.learn(sensed);
        self.schedule(sensed.now);
        let fastest = Schedule::fastest(&self.speed);
        let schedule = |function: usize| {
            let known = self.schedules[function].as_ref();
            known.unwrap_or(&fastest)
        };
        let known = self.schedules.iter().flatten();
        let first = known.map(|schedule| schedule.after(0.0)).max();
        let mut sleep = self.parameters.longest_period.as_secs_f64();
        for (position, range, _, setting) in online(node, sensed, plan) {
            let lowest = self.parameters.efficient.on(range);
            let idle = match self.hopeless {
                true => range.max,
                false => self.parameters.idle.on(range),
            };
            let Some(core) = self.cores.get_mut(position) else {
                continue;
            };
            let asked = |(function, call): (usize, Call)| {
                range.at_least(schedule(function).after(call.work))
            };
            let (frequency, rung) = match core.calls().map(asked).max() {
                None => (idle, 0),
                Some(khz) => (khz, 1 + usize::from(khz > lowest)),
            };
            *setting = Setting { frequency, rung };
            core.set(frequency);
            let rate = self.speed.at(frequency);
            for (function, call) in core.calls() {
                if let Some(more) = schedule(function).until_faster(call.work) {
                    sleep = sleep.min(more / rate);
                }
            }
            if frequency > idle || first.is_some_and(|first| first > idle) {
                // A call may begin any time, and shall begin neither so fast nor so slow.
                sleep = 0.0;
            }
        }
        plan.sleep = Duration::from_secs_f64(sleep).max(self.parameters.shortest_period);
    }
}

#[cfg(test)]
mod tests;
