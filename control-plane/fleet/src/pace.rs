// SPDX-License-Identifier: Apache-2.0
//! How often proxies report, and get tables.

use std::time::Duration;

/// Reports with news a second that are taken of all streams, in the mean: where there are many, each waits longer between
/// two.
pub const MOST_REPORTS_A_SECOND: usize = 1000;

/// Nobody waits longer, so that more proxies than [`MOST_REPORTS_A_SECOND`] send more reports than that.
const LONGEST: Duration = Duration::from_secs(1);

/// Between two reports with news of each of so many streams, in the mean ([`weir_tables::Pace`]).
pub fn pause(streams: usize) -> Duration {
    share(streams, MOST_REPORTS_A_SECOND)
}

/// Tables of a cluster that are sent a second to all proxies together for newer figures alone: a third of a core, as
/// `loadtest/experiment/src/fleet/RESULTS.md` has it.
pub const MOST_TABLES_A_SECOND: usize = 5000;

/// How long a table rests between two that go to so many proxies for newer figures alone.
pub fn rest(proxies: usize) -> Duration {
    share(proxies, MOST_TABLES_A_SECOND)
}

/// Between two of what each of so many does, where all may do `most` a second together.
fn share(all: usize, most: usize) -> Duration {
    let all = u64::try_from(all).unwrap_or(u64::MAX);
    Duration::from_millis(all.saturating_mul(1000) / most as u64).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_share_what_is_taken_a_second() {
        for streams in [1, 8, 100, 640, 1_000] {
            let each = Duration::from_secs(1).div_duration_f64(pause(streams));
            assert!((each * streams as f64 - MOST_REPORTS_A_SECOND as f64).abs() < 1e-6);
        }
        assert_eq!(pause(0), Duration::ZERO);
        assert_eq!(pause(usize::MAX), LONGEST);
    }

    #[test]
    fn tables_of_few_proxies_hardly_rest() {
        assert_eq!(rest(1), Duration::ZERO);
        assert_eq!(rest(100), Duration::from_millis(20), "publish.interval");
        assert_eq!(rest(1_000), Duration::from_millis(200));
        assert_eq!(rest(usize::MAX), LONGEST);
    }
}
