// SPDX-License-Identifier: Apache-2.0
//! How many requests a second a host answers.

use std::collections::VecDeque;
use std::time::Duration;

/// Some answers of a host that gives one a second.
const WINDOW: Duration = Duration::from_secs(10);

/// Answers of the last ten seconds.
#[derive(Debug, Default)]
pub(crate) struct Rate(VecDeque<Duration>);

impl Rate {
    /// One was given.
    pub(crate) fn record(&mut self, now: Duration) {
        self.0.push_back(now);
        self.forget(now);
    }

    /// A second, in the mean of the window or of the time since 0 if that is shorter.
    pub(crate) fn per_second(&mut self, now: Duration) -> f64 {
        self.forget(now);
        let time = now.min(WINDOW).as_secs_f64();
        match self.0.len() {
            0 => 0.0,
            answers => answers as f64 / time.max(1.0),
        }
    }

    fn forget(&mut self, now: Duration) {
        while self.0.front().is_some_and(|at| *at + WINDOW < now) {
            self.0.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_of_the_last_seconds() {
        let at = Duration::from_secs;
        let mut rate = Rate::default();
        assert_eq!(rate.per_second(at(1)), 0.0);
        (1..=4).for_each(|second| rate.record(at(second)));
        assert_eq!(rate.per_second(at(4)), 1.0);
        assert_eq!(
            rate.per_second(at(12)),
            0.3,
            "that of the first second is forgotten"
        );
        assert_eq!(rate.per_second(at(60)), 0.0);
    }
}
