// SPDX-License-Identifier: Apache-2.0
//! How often proxies report.

use std::time::Duration;

/// Reports with news a second that are taken of all streams, in the mean: where there are many, each waits longer between
/// two.
pub const MOST_A_SECOND: usize = 1000;

/// A proxy never waits longer, so that more streams than [`MOST_A_SECOND`] tell more reports than that.
const LONGEST: Duration = Duration::from_secs(1);

/// Between two reports with news of each of so many streams, in the mean ([`weir_tables::Pace`]).
pub fn pause(streams: usize) -> Duration {
    let all = Duration::from_secs(1).saturating_mul(u32::try_from(streams).unwrap_or(u32::MAX));
    (all / MOST_A_SECOND as u32).min(LONGEST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_share_what_is_taken_a_second() {
        for streams in [1, 8, 100, 640, 1_000] {
            let each = Duration::from_secs(1).div_duration_f64(pause(streams));
            assert!((each * streams as f64 - MOST_A_SECOND as f64).abs() < 1e-6);
        }
        assert_eq!(pause(0), Duration::ZERO);
        assert_eq!(pause(usize::MAX), LONGEST);
    }
}
