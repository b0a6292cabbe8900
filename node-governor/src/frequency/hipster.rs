// SPDX-License-Identifier: Apache-2.0
//! All cores alike, at the frequency that has paid at this load: tried by a heuristic first, then looked up.
//!
//! ```text
//!  learning:  a rung by Octopus-Man's rule ─┐
//!                                           ├─> what came of it: reward ─> table[load][rung]
//!  after:     the best rung of the load ────┘
//!             until the target is missed too often: learning again
//! ```
//!
//! Hipster: Nishtala et al., *Hipster: hybrid task manager for latency-critical cloud workloads*, HPCA 2017: a heuristic
//! that fills a table of rewards, learnt from then on as in Q-learning, by load and configuration of cores and
//! frequency; a reward is more the nearer the latency is to its target and the less power it took, and a loss where it
//! was over. Its two phases are as Medeiros, *Profile-guided frequency scaling for search workloads*, section 2.3.2, sums
//! them up; the paper's text was not at hand. The rate of learning and the discount are from memory; the sum that a
//! reward is, and how often is too often, are ours. Power is taken to grow with the cube of the frequency, not measured. Its variant that fills
//! what is left with batch jobs is a matter of core policies here, and cores are alike.

use std::time::Duration;

use crate::frequency::octopus_man::{OctopusMan, RUNGS, TOP, set};
use crate::frequency::{Choose, Parameters, Wrong};
use crate::node::Node;
use crate::plan::Plan;
use crate::sensed::{Nanos, Sensed};

/// Loads that are told apart.
const LOADS: usize = 10;
/// Of a difference, what is learnt at a time.
const RATE: f64 = 0.6;
/// What the best of the next step counts.
const DISCOUNT: f64 = 0.9;
/// Steps that are looked back at.
const WATCHED: u32 = 10;
/// With more of them over the target it learns again.
const MISSES: u32 = 2;

/// The heuristic's parameters, and for how long it alone chooses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hipster {
    /// What the heuristic goes by; the table is learnt by the same target and at the same times.
    pub heuristic: OctopusMan,
    /// From the start. The paper's figure for its services.
    pub learning: Duration,
}

impl Default for Hipster {
    fn default() -> Self {
        Self {
            heuristic: OctopusMan::default(),
            learning: Duration::from_secs(500),
        }
    }
}

impl Parameters for Hipster {
    fn check(&self, node: &Node) -> Result<(), Wrong> {
        self.heuristic.check(node)
    }

    fn begin(&self, node: &Node) -> Box<dyn Choose> {
        // The share of the highest frequency, and by its cube of the power.
        let lowest = node
            .cores
            .iter()
            .map(|core| f64::from(core.range.min.0) / f64::from(core.range.max.0.max(1)));
        Box::new(Learning::new(*self, lowest.fold(1.0, f64::min)))
    }
}

#[derive(Debug)]
struct Learning {
    parameters: Hipster,
    /// Lowest frequency as a share of the highest.
    lowest: f64,
    /// By load and rung; nothing where it was never tried.
    table: [[Option<f64>; RUNGS]; LOADS],
    rung: usize,
    /// Under which `rung` was chosen.
    load: Option<usize>,
    /// Most requests that a measurement was of.
    most: u64,
    began: Option<Nanos>,
    stepped: Option<Nanos>,
    /// Of the last steps those over the target, a bit each.
    missed: u32,
}

impl Learning {
    fn new(parameters: Hipster, lowest: f64) -> Self {
        Self {
            parameters,
            lowest,
            table: [[None; RUNGS]; LOADS],
            rung: TOP,
            load: None,
            most: 1,
            began: None,
            stepped: None,
            missed: 0,
        }
    }

    /// Of a latency as a share of the target, at a rung.
    fn reward(&self, rung: usize, ratio: f64) -> f64 {
        if ratio > 1.0 {
            return -1.0 - ratio;
        }
        let speed = self.lowest + (1.0 - self.lowest) * rung as f64 / TOP as f64;
        ratio + 1.0 - speed.powi(3)
    }

    /// The rung that has paid best, where any was tried.
    fn best(&self, load: usize) -> Option<(usize, f64)> {
        let tried = self.table[load].iter().enumerate();
        let tried = tried.filter_map(|(rung, value)| Some((rung, (*value)?)));
        tried.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    fn learn(&mut self, load: usize, ratio: f64) {
        let Some(before) = self.load else {
            return;
        };
        let next = self.best(load).map_or(0.0, |(_, value)| value);
        let came = self.reward(self.rung, ratio) + DISCOUNT * next;
        let known = &mut self.table[before][self.rung];
        *known = Some(known.map_or(came, |value| value + RATE * (came - value)));
    }

    fn is_learning(&mut self, now: Nanos, ratio: f64) -> bool {
        let began = *self.began.get_or_insert(now);
        if now.since(began) < self.parameters.learning {
            return true;
        }
        self.missed = (self.missed << 1 | u32::from(ratio > 1.0)) & ((1 << WATCHED) - 1);
        let again = self.missed.count_ones() > MISSES;
        if again {
            (self.began, self.missed) = (Some(now), 0);
        }
        again
    }

    fn step(&mut self, sensed: &Sensed) {
        let of = self.parameters.heuristic;
        let stepped = *self.stepped.get_or_insert(sensed.now);
        let Some(tail) = sensed.fresh_tail(of.stale) else {
            (self.rung, self.load, self.stepped) = (TOP, None, Some(sensed.now));
            return;
        };
        if sensed.now.since(stepped) < of.interval {
            return;
        }
        self.stepped = Some(sensed.now);
        self.most = self.most.max(tail.requests);
        let share = tail.requests as f64 / self.most as f64;
        let load = ((share * LOADS as f64) as usize).min(LOADS - 1);
        let ratio = tail.latency.div_duration_f64(of.target);
        self.learn(load, ratio);
        let by_rule = of.step(self.rung, ratio);
        let is_learning = self.is_learning(sensed.now, ratio);
        self.rung = match self.best(load).filter(|_| !is_learning) {
            Some((rung, _)) => rung,
            None => by_rule,
        };
        self.load = Some(load);
    }
}

impl Choose for Learning {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        self.step(sensed);
        set(self.rung, node, sensed, plan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::tests::{NOW, cold, node};
    use crate::frequency::{Khz, Policy};
    use crate::planner::Planner;
    use crate::sensed::Tail;

    /// Frequencies of a service whose latency is so many seconds at 1 GHz, in each of so many intervals.
    fn played(work: f64, intervals: u64) -> Vec<Khz> {
        let policy = Policy::Hipster(Hipster::default());
        let mut planner = Planner::new(node(1), policy, Duration::from_secs(1));
        let mut plan = Plan::default();
        let mut played = Vec::new();
        for interval in 0..intervals {
            let now = Nanos(NOW.0 + interval * 30_000_000_000);
            let khz = plan
                .cores
                .first()
                .map_or(2_600_000, |core| core.frequency.0);
            let tail = Tail {
                latency: Duration::from_secs_f64(work / (f64::from(khz) / 1e6)),
                requests: 100,
                at: now,
            };
            let sensed = Sensed {
                now,
                cores: vec![cold()],
                tail: Some(tail),
                ..Sensed::default()
            };
            planner.plan(&sensed, &mut plan);
            played.push(plan.cores[0].frequency);
        }
        played
    }

    #[test]
    fn it_learns_a_frequency_that_meets_the_target_at_little_power_and_stays() {
        let work = 1.2;
        let played = played(work, 60);
        let (settled, last) = (played[40], played[59]);
        assert_eq!(settled, last);
        let latency = work / (f64::from(last.0) / 1e6);
        assert!((0.6..=1.0).contains(&latency), "{latency}");
    }

    #[test]
    fn what_was_over_the_target_is_not_what_pays() {
        let mut learning = Learning {
            rung: 2,
            load: Some(9),
            ..Learning::new(Hipster::default(), 0.4)
        };
        learning.learn(9, 1.3);
        learning.rung = 5;
        learning.learn(9, 0.8);
        assert_eq!(learning.best(9).unwrap().0, 5);
    }

    #[test]
    fn a_target_that_is_missed_too_often_is_learnt_anew() {
        let mut learning = Learning::new(Hipster::default(), 0.4);
        let mut is_learning =
            |second: u64, ratio| learning.is_learning(Nanos(second * 1_000_000_000), ratio);
        assert!(is_learning(0, 1.2) && !is_learning(500, 1.2) && !is_learning(530, 0.9));
        assert!(!is_learning(560, 1.2) && is_learning(590, 1.2));
        assert!(is_learning(1000, 0.5) && !is_learning(1100, 0.5));
    }
}
