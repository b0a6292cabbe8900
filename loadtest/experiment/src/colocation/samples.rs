// SPDX-License-Identifier: Apache-2.0
//! What memcached and the jobs had over time, seen in the kernel's files ten times a second.

use std::time::Duration;

use serde::Serialize;

/// Between two looks, at least.
const EVERY: Duration = Duration::from_millis(100);

/// One look.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// From the round's start.
    pub at_s: f64,
    /// Cores that memcached may use.
    pub service: usize,
    /// For each job: 0 where it is not there, 1 where it is paused, 2 where it runs.
    pub jobs: Vec<u8>,
}

/// Those of one round.
#[derive(Debug, Default)]
pub struct Samples {
    /// In order.
    pub all: Vec<Sample>,
    next: Duration,
}

impl Samples {
    /// Whether it is time for the next one.
    #[must_use]
    pub fn is_due(&mut self, now: Duration) -> bool {
        let due = now >= self.next;
        if due {
            self.next = now + EVERY;
        }
        due
    }
}
