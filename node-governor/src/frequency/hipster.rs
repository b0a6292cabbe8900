// SPDX-License-Identifier: Apache-2.0
//! All cores alike, at the frequency that has paid at this load: tried by a heuristic first, then looked up.
//!
//! HipsterIn of Hipster ([`crate::learner`], with its source): what is gained beside the latency is power. Power is
//! taken to grow with the cube of the frequency, not measured. HipsterCo, which fills what is left with batch jobs, is the
//! core policy `hipster_co`. Cores are alike here: a rung is a frequency.

use std::time::Duration;

use crate::frequency::octopus_man::{OctopusMan, TOP, set};
use crate::frequency::{Choose, Parameters, Wrong};
use crate::learner::{Heed, Learner, Outcome};
use crate::node::Node;
use crate::plan::Plan;
use crate::sensed::{Nanos, Sensed};

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
    learner: Learner,
    stepped: Option<Nanos>,
}

impl Learning {
    fn new(parameters: Hipster, lowest: f64) -> Self {
        Self {
            parameters,
            lowest,
            learner: Learner::new(TOP, parameters.learning),
            stepped: None,
        }
    }

    /// What a rung saves of the highest one's power.
    fn saved(&self, rung: usize) -> f64 {
        let speed = self.lowest + (1.0 - self.lowest) * rung as f64 / TOP as f64;
        1.0 - speed.powi(3)
    }

    fn step(&mut self, sensed: &Sensed) {
        let of = self.parameters.heuristic;
        let stepped = *self.stepped.get_or_insert(sensed.now);
        let Some(tail) = sensed.fresh_tail(of.stale) else {
            self.learner.give_all();
            self.stepped = Some(sensed.now);
            return;
        };
        if sensed.now.since(stepped) < of.interval {
            return;
        }
        self.stepped = Some(sensed.now);
        let rung = self.learner.rung();
        let ratio = tail.latency.div_duration_f64(of.target);
        let outcome = Outcome {
            requests: tail.requests,
            ratio,
            gain: self.saved(rung),
        };
        let by_rule = of.step(rung, ratio);
        self.learner
            .step(sensed.now, outcome, by_rule, Heed::WhileLearning);
    }
}

impl Choose for Learning {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        self.step(sensed);
        set(self.learner.rung(), node, sensed, plan);
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
}
