// SPDX-License-Identifier: Apache-2.0
//! How long one more request would wait at a host, by the requests that are there.

use std::time::Duration;

/// A new run time counts for so much in the mean of runs, one part of these: a few dozen requests renew it.
const PARTS: u32 = 16;

/// A run counts for no more than so many means: one that takes an hour, as its client reads slowly, makes no host seem full.
const LONGEST: u32 = 4;

/// What was seen of a host's requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Occupancy {
    /// Mean of those requests that had a core at once; what others took has their wait in it.
    run: Option<Duration>,
}

impl Occupancy {
    /// A request that found a core idle took so long.
    pub fn ran(&mut self, took: Duration) {
        let run = self.run.unwrap_or(took);
        let took = took.min(run.saturating_mul(LONGEST));
        self.run = Some((run.saturating_mul(PARTS - 1).saturating_add(took)) / PARTS);
    }

    /// Mean of the runs that were seen, if any was.
    pub fn run(&self) -> Option<Duration> {
        self.run
    }

    /// How long one more request would wait for a core; none where no run has been seen.
    pub fn wait(&self, in_flight: u64, cores: u32) -> Option<Duration> {
        let ahead = (in_flight + 1).saturating_sub(cores.into());
        let ahead = u32::try_from(ahead).unwrap_or(u32::MAX);
        Some(self.run?.saturating_mul(ahead) / cores.max(1))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_request_waits_for_those_before_it_and_not_while_a_core_is_idle() {
        let mut host = Occupancy::default();
        assert_eq!(host.wait(9, 4), None, "no run was seen");
        host.ran(ms(100));
        assert_eq!(host.wait(3, 4), Some(ms(0)));
        assert_eq!(host.wait(4, 4), Some(ms(25)));
        assert_eq!(host.wait(11, 4), Some(ms(200)));
    }

    #[test]
    fn the_mean_run_follows_what_requests_take_now() {
        let mut host = Occupancy::default();
        host.ran(ms(100));
        for _ in 0..100 {
            host.ran(ms(300));
        }
        let wait = host.wait(1, 1).unwrap();
        assert!(ms(295) < wait && wait <= ms(300), "{wait:?}");
    }

    #[test]
    fn one_that_is_read_for_an_hour_is_no_hour_for_all() {
        let mut host = Occupancy::default();
        host.ran(ms(100));
        host.ran(Duration::from_secs(3600));
        assert!(host.wait(1, 1).unwrap() < ms(120));
    }

    proptest! {
        #[test]
        fn no_time_and_number_of_requests_is_too_large(
            runs in prop::collection::vec(any::<u64>(), 1..5), in_flight in 0..=u64::MAX - 1, cores in any::<u32>(),
        ) {
            let mut host = Occupancy::default();
            runs.into_iter().for_each(|run| host.ran(Duration::from_nanos(run)));
            prop_assert!(host.wait(in_flight, cores).is_some());
        }
    }
}
