// SPDX-License-Identifier: Apache-2.0
//! The mean wait of the jobs that began lately.

use std::collections::VecDeque;
use std::time::Duration;

/// DAGOR's own window: long enough to average, short enough to follow.
const WINDOW: Duration = Duration::from_secs(1);

/// Waits of the last second.
#[derive(Debug, Default)]
pub struct RecentDelay {
    starts: VecDeque<(Duration, Duration)>,
    sum: Duration,
}

impl RecentDelay {
    /// Adds a wait that ended now.
    pub fn record(&mut self, now: Duration, wait: Duration) {
        self.starts.push_back((now, wait));
        self.sum += wait;
        self.forget(now);
    }

    /// Of the waits that ended within the window; `None` if none did.
    pub fn mean(&mut self, now: Duration) -> Option<Duration> {
        self.forget(now);
        let n = u32::try_from(self.starts.len()).unwrap_or(u32::MAX);
        self.sum.checked_div(n)
    }

    fn forget(&mut self, now: Duration) {
        while let Some((at, wait)) = self.starts.front().copied()
            && at + WINDOW < now
        {
            self.sum -= wait;
            self.starts.pop_front();
        }
    }
}
