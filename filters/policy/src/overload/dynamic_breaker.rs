// SPDX-License-Identifier: Apache-2.0
//! A circuit breaker whose threshold follows the response time (Sedghpour, Klein and Tordsson, *Service mesh
//! circuit breaker: From panic button to performance management tool*, HAOC 2021, as document 001, section
//! 5.4, describes it).
//!
//! Of a response the wait is the part that load changes, so the threshold follows the wait: it is the static
//! breaker's while jobs wait no longer than they should, and falls in inverse proportion to the wait beyond.
//! A host that is slow for whatever reason closes with a shorter queue than a fast one.

use std::time::Duration;

use crate::{Level, Load};

/// The wait beyond which the threshold falls. A host that does 16 jobs a second (four cores, 250 ms each)
/// then closes at 40 queued jobs, 2.5 s of work, instead of at 100.
pub const WAIT: Duration = Duration::from_secs(1);
/// The threshold falls no lower: that many jobs keep the cores of a small host busy between two polls.
pub const LEAST_QUEUED_JOBS: u32 = 10;

/// How the threshold moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Params {
    /// The threshold of a host whose jobs hardly wait.
    pub queued_jobs: u32,
    /// The mean wait beyond which it falls.
    pub wait: Duration,
    /// It falls no lower than this.
    pub least_queued_jobs: u32,
}

impl Default for Params {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Params {
    /// The static breaker's threshold, and the two above.
    pub(super) const DEFAULT: Self = Self {
        queued_jobs: super::breaker::QUEUED_JOBS,
        wait: WAIT,
        least_queued_jobs: LEAST_QUEUED_JOBS,
    };

    /// Jobs that may be queued where jobs waited so long on average; none: nobody has measured it.
    pub fn threshold(&self, wait: Option<Duration>) -> u32 {
        let wait = wait.unwrap_or_default().max(self.wait).as_nanos();
        let most = u128::from(self.queued_jobs);
        let share = (most * self.wait.as_nanos()).checked_div(wait);
        let threshold = share.and_then(|jobs| u32::try_from(jobs).ok());
        let threshold = threshold.unwrap_or(self.queued_jobs);
        threshold.max(self.least_queued_jobs).min(self.queued_jobs)
    }
}

/// Open (nothing admitted) while more jobs wait than the threshold says.
pub(crate) fn level(load: Option<&Load>, params: &Params) -> Level {
    match load {
        Some(load) if load.queued > params.threshold(load.queuing_delay) => Level::NONE,
        _ => Level::ALL,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn params(queued_jobs: u32, wait_ms: u64, least_queued_jobs: u32) -> Params {
        Params {
            queued_jobs,
            wait: Duration::from_millis(wait_ms),
            least_queued_jobs,
        }
    }

    #[test]
    fn the_threshold_halves_when_the_wait_doubles_and_stops_at_the_least() {
        let params = params(100, 1000, 10);
        let at = |ms| params.threshold(Some(Duration::from_millis(ms)));
        assert_eq!([at(0), at(1000), at(2000), at(4000)], [100, 100, 50, 25]);
        assert_eq!(at(3_600_000), 10);
        assert_eq!(params.threshold(None), 100, "as the static breaker");
    }

    proptest! {
        #[test]
        fn the_threshold_never_rises_with_the_wait_and_keeps_its_bounds(
            most: u32, wait_ms in 0u64..100_000, least: u32, waits in prop::collection::vec(0u64..1_000_000, 1..9),
        ) {
            let params = params(most, wait_ms, least);
            let mut waits = waits;
            waits.sort_unstable();
            let thresholds: Vec<_> = waits
                .iter()
                .map(|ms| params.threshold(Some(Duration::from_millis(*ms))))
                .collect();
            prop_assert!(thresholds.is_sorted_by(|a, b| a >= b), "{thresholds:?}");
            prop_assert!(thresholds.iter().all(|jobs| (least.min(most)..=most).contains(jobs)));
        }

        #[test]
        fn it_closes_no_later_than_the_static_breaker_and_never_an_empty_queue(
            queued: u32, most: u32, least in 0u32..100, wait_ms in 0u64..100_000, delay_ms in 0u64..1_000_000,
        ) {
            let load = Load {
                queued,
                queuing_delay: Some(Duration::from_millis(delay_ms)),
                ..Load::default()
            };
            let dynamic = level(Some(&load), &params(most, wait_ms, least));
            let fixed = super::super::breaker::level(Some(&load), most);
            prop_assert!(dynamic <= fixed);
            prop_assert!(queued > 0 || dynamic == Level::ALL);
        }
    }
}
