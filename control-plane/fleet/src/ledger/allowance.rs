// SPDX-License-Identifier: Apache-2.0
//! How far the counters of one VM may rise.

use std::time::Duration;

/// One worker thread of Envoy with Weir takes 110 µs of a core for a request on the machine of the project's
/// measurements, 9,000 a second; five times that is beyond any core.
pub(super) const MOST_A_SECOND: u64 = 50_000;
/// What a VM may have done before it was heard of first: its record is written ten times a second and reported at least
/// once a second.
const AT_FIRST: Duration = Duration::from_secs(2);
/// What it may catch up with after a silence.
const LONGEST: Duration = Duration::from_secs(10);

/// Requests that a VM may still report.
#[derive(Debug)]
pub(super) struct Allowance {
    left: u64,
    at: Duration,
}

impl Allowance {
    /// Of a VM that is heard of for the first time.
    pub(super) fn new(now: Duration) -> Self {
        Self {
            left: worth(AT_FIRST),
            at: now,
        }
    }

    /// Whether the VM can have done so many since it was heard last; if so they are taken off.
    pub(super) fn take(&mut self, requests: u64, now: Duration) -> bool {
        let since = now.saturating_sub(self.at);
        self.at = self.at.max(now);
        self.left = (self.left + worth(since.min(LONGEST))).min(worth(LONGEST));
        match self.left.checked_sub(requests) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

fn worth(time: Duration) -> u64 {
    MOST_A_SECOND * time.as_millis() as u64 / 1000
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vm_reports_no_more_than_it_can_do_in_the_time_however_often_it_reports() {
        let second = Duration::from_secs;
        let mut allowance = Allowance::new(second(100));
        assert!(!allowance.take(2 * MOST_A_SECOND + 1, second(100)));
        assert!(allowance.take(2 * MOST_A_SECOND, second(100)));
        let mut taken = 0;
        for millisecond in 0..5_000 {
            let now = second(100) + Duration::from_millis(millisecond);
            taken += u64::from(allowance.take(1_000, now)) * 1_000;
        }
        assert!(taken <= 5 * MOST_A_SECOND, "{taken}");
        assert!(!allowance.take(10 * MOST_A_SECOND + 1, second(100_000)));
        assert!(allowance.take(10 * MOST_A_SECOND, second(100_001)));
    }
}
