// SPDX-License-Identifier: Apache-2.0
//! A figure averaged over time, newer values counting more.

use std::time::Duration;

use crate::sensed::Nanos;

/// After `over`, a value counts for a third of what it did (1/e).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Average {
    over: Duration,
    value: f64,
    last: Option<Nanos>,
}

impl Average {
    pub(crate) fn new(over: Duration) -> Self {
        Self {
            over,
            value: 0.0,
            last: None,
        }
    }

    /// The average with what the figure has been since the last time. It begins at 0 with the first.
    pub(crate) fn with(&mut self, now: Nanos, value: f64) -> f64 {
        let over = self.over.as_secs_f64().max(1e-9);
        let elapsed = self.last.map_or(0.0, |last| now.since(last).as_secs_f64());
        self.last = Some(now);
        self.value += (1.0 - (-elapsed / over).exp()) * (value - self.value);
        self.value
    }
}
