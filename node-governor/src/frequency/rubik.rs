// SPDX-License-Identifier: Apache-2.0
//! For each core the lowest frequency at which neither its call nor one that waits is likely to be late.
//!
//! Rubik: Kasture, Bartolini, Beckmann and Sanchez, *Rubik: fast analytical power management for latency-critical
//! systems*, MICRO 2015, summed up by Medeiros, *Profile-guided frequency scaling for search workloads*, section 2.3.1.
//! Its rule is told from memory, for the paper's text was not at hand:
//!
//! ```text
//! frequency ≥ C(i) / (L - t(i) - M(i))     of the call that runs, i = 0, and of each that waits behind it
//! ```
//!
//! `C(i)` is the work that call `i` and those before it may still need, a high quantile of it: of the running call's
//! what is left given what it has done, of the others' the whole. `t(i)` is for how long it has been there, `M(i)` what
//! is no slower at a lower frequency. `L` is the target, moved by a feedback from the measured tail. The sum of
//! several calls is taken as normal; the paper adds up histograms of the first sixteen.
//!
//! Here a decision is made each `period` instead of at each arrival and end, and those who wait do so for all cores
//! alike: of `n` cores each has every `n`th. A call begins at `idle` until it is seen.

use std::time::Duration;

use crate::frequency::budget::{Budget, Feedback};
use crate::frequency::calls::{self, Call, Left, Progress, Speed, Works};
use crate::frequency::{Choose, Frequency, Khz, Parameters, Wrong, online};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::{FUNCTIONS, Nanos, Sensed};

/// Who waits behind more than so many on a core is not looked at: its core is at its highest frequency long before.
const BEHIND: usize = 16;

/// The target and what is known of the machine.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rubik {
    /// What the quantile of [`Tail`](crate::sensed::Tail) shall stay under. By default the second of Medeiros,
    /// chapter 4.
    pub target: Duration,
    /// No hot function runs on the core, and calls that begin have this until they are seen.
    pub idle: Frequency,
    /// Share of a call's time at the highest frequency that is the same at every frequency.
    pub memory: f64,
    /// Of what calls may still need. The paper's figure.
    pub quantile: f64,
    /// Of the target, what is kept in hand: a tail that is measured over half a minute scatters. Ours.
    pub margin: f64,
    /// The bound as a share of the target until a tail is measured, and when none is any more: the rest of a request
    /// takes its part. Ours.
    pub budget: f64,
    /// A tail that stays off the target by so much moves the bound by as much in this time. Ours, as is `stale`.
    pub settle: Duration,
    /// A measurement older than this is none.
    pub stale: Duration,
    /// Between two decisions.
    pub period: Duration,
}

impl Default for Rubik {
    fn default() -> Self {
        Self {
            target: Duration::from_secs(1),
            idle: Frequency::Share(0.0),
            memory: 0.0,
            quantile: 0.95,
            margin: 0.05,
            budget: 0.5,
            settle: Duration::from_secs(120),
            stale: Duration::from_secs(10),
            period: Duration::from_millis(10),
        }
    }
}

impl Rubik {
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

impl Parameters for Rubik {
    fn check(&self, node: &Node) -> Result<(), Wrong> {
        self.idle.check("idle", node)?;
        self.feedback().check()?;
        calls::check(self.memory, self.quantile)?;
        if self.period.is_zero() {
            return Err(Wrong::new("period", "must not be 0"));
        }
        Ok(())
    }

    fn begin(&self, node: &Node) -> Box<dyn Choose> {
        let (speed, _) = Speed::of(node, self.memory);
        Box::new(Bounding {
            parameters: *self,
            speed,
            cores: vec![Progress::new(&speed); node.cores.len()],
            works: vec![Works::default(); FUNCTIONS],
            all: Works::default(),
            bound: Budget::new(self.feedback()),
        })
    }
}

#[derive(Debug)]
struct Bounding {
    parameters: Rubik,
    speed: Speed,
    cores: Vec<Progress>,
    /// By function.
    works: Vec<Works>,
    /// Of all: which function those call who wait is not known.
    all: Works,
    bound: Budget,
}

impl Bounding {
    /// Takes in what has happened since the last tick.
    fn learn(&mut self, sensed: &Sensed) {
        calls::follow(&mut self.cores, sensed, &self.speed, |function, work| {
            if let Some(works) = self.works.get_mut(function) {
                works.add(work);
                self.all.add(work);
            }
        });
        self.bound.follow(sensed);
    }

    /// What a call asks for, and those who wait behind it, each of whom may need as much as `whole`. The highest where
    /// too little is known.
    fn asked(
        &self,
        function: usize,
        call: Call,
        whole: Option<&Left>,
        now: Nanos,
        waiting: impl Iterator<Item = Nanos>,
    ) -> Khz {
        let quantile = self.parameters.quantile;
        let Some(mut left) = self.works[function].left(call.work, quantile) else {
            return self.speed.fastest;
        };
        let remain = |since: Nanos| self.bound.seconds() - now.since(since).as_secs_f64();
        let own = self.speed.needed(left.quantile, remain(call.since));
        let Some(whole) = whole else {
            return own;
        };
        let behind = waiting.map(|since| {
            left = left.and(whole, quantile);
            self.speed.needed(left.quantile, remain(since))
        });
        behind.fold(own, Khz::max)
    }
}

impl Choose for Bounding {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        self.learn(sensed);
        let cores = sensed.cores.iter().filter(|core| core.online).count();
        // Every core has its part of those who wait.
        let waiting = || {
            let every = sensed.waiting.iter().copied().step_by(cores.max(1));
            every.take(BEHIND)
        };
        let whole = match sensed.waiting.is_empty() {
            true => None,
            false => self.all.left(0.0, self.parameters.quantile),
        };
        for (position, range, _, setting) in online(node, sensed, plan) {
            let Some(core) = self.cores.get(position) else {
                continue;
            };
            let asked = |(function, call)| {
                self.asked(function, call, whole.as_ref(), sensed.now, waiting())
            };
            let (frequency, rung) = match core.calls().map(asked).max() {
                None => (self.parameters.idle.on(range), 0),
                Some(khz) => (range.at_least(khz), 1),
            };
            *setting = Setting { frequency, rung };
            if let Some(core) = self.cores.get_mut(position) {
                core.set(frequency);
            }
        }
        plan.sleep = self.parameters.period;
    }
}

#[cfg(test)]
mod tests;
