// SPDX-License-Identifier: Apache-2.0
//! The rung of a ladder of configurations: by a rule first, then the one that has paid at this load.
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
//! frequency; a reward is more the nearer the latency is to its target and the more is gained beside, and a loss where it
//! was over. What is gained is the policy's to say. Its two phases are as Medeiros, *Profile-guided frequency scaling for
//! search workloads*, section 2.3.2, sums them up; the paper's text was not at hand. The rate of learning and the
//! discount are from memory; the sum that a reward is, and how often is too often, are ours.

use std::time::Duration;

use crate::sensed::Nanos;

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

/// What came of the rung since the last step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outcome {
    /// Of requests that the latency was taken from.
    pub(crate) requests: u64,
    /// The latency as a share of its target.
    pub(crate) ratio: f64,
    /// Beside the latency, 0 to 1.
    pub(crate) gain: f64,
}

/// When the rule is heeded and not the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heed {
    /// Only then.
    WhileLearning,
    /// And where it leads to a rung that was never tried at this load.
    UntilTried,
    /// Whatever was learnt.
    Always,
}

/// Where the ladder is climbed to, and what was learnt of its rungs.
#[derive(Debug)]
pub(crate) struct Learner {
    /// For so long the rule alone chooses.
    learning: Duration,
    /// By load and rung; nothing where it was never tried.
    table: [Vec<Option<f64>>; LOADS],
    rung: usize,
    /// Under which `rung` was chosen.
    load: Option<usize>,
    /// Most requests that a measurement was of.
    most: u64,
    began: Option<Nanos>,
    /// Of the last steps those over the target, a bit each.
    missed: u32,
}

impl Learner {
    /// Of a ladder with rungs from 0 to `top`, on which it begins.
    pub(crate) fn new(top: usize, learning: Duration) -> Self {
        Self {
            learning,
            table: std::array::from_fn(|_| vec![None; top + 1]),
            rung: top,
            load: None,
            most: 1,
            began: None,
            missed: 0,
        }
    }

    pub(crate) fn rung(&self) -> usize {
        self.rung
    }

    pub(crate) fn top(&self) -> usize {
        self.table[0].len() - 1
    }

    /// Nothing is known of the service: the highest rung, and nothing is learnt of what was before.
    pub(crate) fn give_all(&mut self) {
        (self.rung, self.load) = (self.top(), None);
    }

    /// Learns of the outcome, and goes to the next rung: `by_rule`, or the one that has paid best.
    pub(crate) fn step(&mut self, now: Nanos, outcome: Outcome, by_rule: usize, heed: Heed) {
        self.most = self.most.max(outcome.requests);
        let share = outcome.requests as f64 / self.most as f64;
        let load = ((share * LOADS as f64) as usize).min(LOADS - 1);
        self.learn(load, outcome);
        let by_rule = by_rule.min(self.top());
        let is_heeded = match heed {
            Heed::WhileLearning => false,
            Heed::UntilTried => self.table[load][by_rule].is_none(),
            Heed::Always => true,
        };
        let is_learning = self.is_learning(now, outcome.ratio);
        self.rung = match self.best(load).filter(|_| !is_learning && !is_heeded) {
            Some((rung, _)) => rung,
            None => by_rule,
        };
        self.load = Some(load);
    }

    /// The rung that has paid best, where any was tried.
    fn best(&self, load: usize) -> Option<(usize, f64)> {
        let tried = self.table[load].iter().enumerate();
        let tried = tried.filter_map(|(rung, value)| Some((rung, (*value)?)));
        tried.max_by(|(_, one), (_, other)| one.total_cmp(other))
    }

    fn learn(&mut self, load: usize, outcome: Outcome) {
        let Some(before) = self.load else {
            return;
        };
        let next = self.best(load).map_or(0.0, |(_, value)| value);
        let came = reward(outcome) + DISCOUNT * next;
        let known = &mut self.table[before][self.rung];
        *known = Some(known.map_or(came, |value| value + RATE * (came - value)));
    }

    fn is_learning(&mut self, now: Nanos, ratio: f64) -> bool {
        let began = *self.began.get_or_insert(now);
        if now.since(began) < self.learning {
            return true;
        }
        self.missed = (self.missed << 1 | u32::from(ratio > 1.0)) & ((1 << WATCHED) - 1);
        let again = self.missed.count_ones() > MISSES;
        if again {
            (self.began, self.missed) = (Some(now), 0);
        }
        again
    }
}

fn reward(outcome: Outcome) -> f64 {
    match outcome.ratio {
        over if over > 1.0 => -1.0 - over,
        near => near + outcome.gain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learner() -> Learner {
        Learner::new(8, Duration::from_secs(500))
    }

    fn of(ratio: f64, gain: f64) -> Outcome {
        Outcome {
            requests: 100,
            ratio,
            gain,
        }
    }

    #[test]
    fn what_was_over_the_target_is_not_what_pays() {
        let mut learner = Learner {
            rung: 2,
            load: Some(9),
            ..learner()
        };
        learner.learn(9, of(1.3, 1.0));
        learner.rung = 5;
        learner.learn(9, of(0.8, 0.0));
        assert_eq!(learner.best(9).unwrap().0, 5);
    }

    #[test]
    fn a_target_that_is_missed_too_often_is_learnt_anew() {
        let mut learner = learner();
        let mut is_learning =
            |second: u64, ratio| learner.is_learning(Nanos(second * 1_000_000_000), ratio);
        assert!(is_learning(0, 1.2) && !is_learning(500, 1.2) && !is_learning(530, 0.9));
        assert!(!is_learning(560, 1.2) && is_learning(590, 1.2));
        assert!(is_learning(1000, 0.5) && !is_learning(1100, 0.5));
    }
}
