// SPDX-License-Identifier: Apache-2.0
//! How long calls may take, for the measured tail to be at its target.
//!
//! An integral: what the tail is off the target moves the budget, so that it also makes up for other parts of a request,
//! for time spent waiting in queues, and for what a model of speed gets wrong.

use std::time::Duration;

use crate::frequency::Wrong;
use crate::sensed::{Nanos, Sensed};

/// How the budget follows.
#[derive(Clone, Copy, Debug)]
pub(super) struct Feedback {
    pub(super) target: Duration,
    /// Of the target, what is kept in hand.
    pub(super) margin: f64,
    /// The budget while no tail is measured, as a share of the target.
    pub(super) unmeasured: f64,
    /// A tail that stays off the target by so much moves the budget by as much in this time.
    pub(super) settle: Duration,
    /// A measurement older than this is none.
    pub(super) stale: Duration,
}

impl Feedback {
    /// By the names that the policies have for these.
    pub(super) fn check(&self) -> Result<(), Wrong> {
        let wrong = |field, reason| Err(Wrong::new(field, reason));
        if self.target.is_zero() {
            return wrong("target", "must not be 0");
        }
        if !(0.0..1.0).contains(&self.margin) {
            return wrong("margin", "must be from 0 to less than 1");
        }
        if !(self.unmeasured > 0.0 && self.unmeasured <= 1.0) {
            return wrong("budget", "must be more than 0 and at most 1");
        }
        if self.settle.is_zero() {
            return wrong("settle", "must not be 0");
        }
        Ok(())
    }
}

#[derive(Debug)]
pub(super) struct Budget {
    feedback: Feedback,
    seconds: f64,
    last: Option<Nanos>,
    /// When a tail was known last.
    known: Option<Nanos>,
}

impl Budget {
    pub(super) fn new(feedback: Feedback) -> Self {
        Self {
            seconds: feedback.target.mul_f64(feedback.unmeasured).as_secs_f64(),
            feedback,
            last: None,
            known: None,
        }
    }

    /// In seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Takes in what was measured since. A source that is silent for once, or a tail beyond what it can tell, is no reason
    /// to forget what was learned: the budget stays until nothing was known for `stale`.
    pub(super) fn follow(&mut self, sensed: &Sensed) {
        let of = &self.feedback;
        let last = self.last.replace(sensed.now);
        let elapsed = last.map_or(Duration::ZERO, |last| sensed.now.since(last));
        let target = of.target.as_secs_f64();
        self.seconds = match sensed.fresh_tail(of.stale) {
            Some(tail) => {
                self.known = Some(sensed.now);
                let left = target * (1.0 - of.margin) - tail.latency.as_secs_f64();
                let step = left * elapsed.div_duration_f64(of.settle);
                (self.seconds + step).clamp(target / 100.0, target * 10.0)
            }
            None => match self.known {
                Some(known) if sensed.now.since(known) <= of.stale => self.seconds,
                _ => target * of.unmeasured,
            },
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sensed::Tail;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn what_was_learned_stays_until_nothing_was_known_for_so_long() {
        let mut budget = Budget::new(Feedback {
            target: Duration::from_secs(1),
            margin: 0.0,
            unmeasured: 0.5,
            settle: Duration::from_secs(10),
            stale: Duration::from_secs(10),
        });
        let mut follow = |seconds: u64, latency: Option<f64>| {
            let now = Nanos(seconds * SECOND);
            let tail = latency.map(|latency| Tail {
                latency: Duration::from_secs_f64(latency),
                requests: 1,
                at: now,
            });
            budget.follow(&Sensed {
                now,
                tail,
                ..Sensed::default()
            });
            budget.seconds()
        };
        assert_eq!(follow(0, None), 0.5);
        follow(1, Some(2.0));
        let learned = follow(4, Some(2.0));
        assert!(learned < 0.4, "{learned}");
        for second in 5..=14 {
            assert_eq!(follow(second, None), learned, "{second}");
        }
        assert_eq!(follow(15, None), 0.5);
    }
}
