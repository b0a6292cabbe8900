// SPDX-License-Identifier: Apache-2.0
//! Busy cores, summed up over time.

use std::time::Duration;

#[derive(Debug, Default)]
pub(super) struct Busy {
    /// Core time until `since`.
    core_time: Duration,
    since: Duration,
    /// Busy from `since` on.
    cores: u32,
}

impl Busy {
    /// From `now` on so many cores are busy.
    pub(super) fn change(&mut self, now: Duration, cores: usize) {
        self.core_time = self.until(now);
        self.since = now;
        self.cores = u32::try_from(cores).unwrap_or(u32::MAX);
    }

    /// Core time until `now`.
    pub(super) fn until(&self, now: Duration) -> Duration {
        let lasted = now.saturating_sub(self.since);
        self.core_time
            .saturating_add(lasted.saturating_mul(self.cores))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_time_is_that_of_the_cores_that_were_busy_in_between() {
        let seconds = Duration::from_secs;
        let mut busy = Busy::default();
        busy.change(seconds(2), 3);
        assert_eq!(busy.until(seconds(2)), Duration::ZERO);
        assert_eq!(busy.until(seconds(4)), seconds(6));
        busy.change(seconds(4), 1);
        busy.change(seconds(5), 0);
        assert_eq!(busy.until(seconds(9)), seconds(7));
    }
}
