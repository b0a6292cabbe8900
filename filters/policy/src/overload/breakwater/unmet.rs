// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

/// Requests that no host admitted, of this time and the one before it. The default time after which who was refused comes
/// again, so that each who still wants to be served counts about once.
const WINDOW: Duration = Duration::from_secs(1);

/// How many requests found no host lately.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unmet {
    since: Duration,
    refused: u32,
    before: u32,
}

impl Unmet {
    /// No host admits a request.
    pub(crate) fn refused(&mut self, now: Duration) {
        let gone = now.saturating_sub(self.since);
        if gone >= WINDOW {
            self.before = if gone < 2 * WINDOW { self.refused } else { 0 };
            self.refused = 0;
            self.since = now;
        }
        self.refused = self.refused.saturating_add(1);
    }

    /// How many there were in a whole window: the larger of this one and the one before.
    pub(crate) fn lately(&self, now: Duration) -> u32 {
        match now.saturating_sub(self.since) {
            gone if gone < WINDOW => self.refused.max(self.before),
            gone if gone < 2 * WINDOW => self.refused,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_refused_counts_for_a_window_and_the_next() {
        let at = |tenths: u32| WINDOW * tenths / 10;
        let mut unmet = Unmet::default();
        assert_eq!(unmet.lately(at(100)), 0);
        for _ in 0..3 {
            unmet.refused(at(100));
        }
        assert_eq!([109, 119, 120].map(|t| unmet.lately(at(t))), [3, 3, 0]);
        unmet.refused(at(115));
        assert_eq!(unmet.lately(at(115)), 3, "of a whole window");
        assert_eq!(unmet.lately(at(125)), 1);
        unmet.refused(at(200));
        assert_eq!(unmet.lately(at(200)), 1);
    }
}
