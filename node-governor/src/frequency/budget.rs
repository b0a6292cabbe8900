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
}

impl Budget {
    pub(super) fn new(feedback: Feedback) -> Self {
        Self {
            seconds: feedback.target.mul_f64(feedback.unmeasured).as_secs_f64(),
            feedback,
            last: None,
        }
    }

    /// In seconds.
    pub(super) fn seconds(&self) -> f64 {
        self.seconds
    }

    /// Takes in what was measured since.
    pub(super) fn follow(&mut self, sensed: &Sensed) {
        let of = &self.feedback;
        let last = self.last.replace(sensed.now);
        let elapsed = last.map_or(Duration::ZERO, |last| sensed.now.since(last));
        let target = of.target.as_secs_f64();
        self.seconds = match sensed.fresh_tail(of.stale) {
            Some(tail) => {
                let left = target * (1.0 - of.margin) - tail.latency.as_secs_f64();
                let step = left * elapsed.div_duration_f64(of.settle);
                (self.seconds + step).clamp(target / 100.0, target * 10.0)
            }
            None => target * of.unmeasured,
        };
    }
}
