// SPDX-License-Identifier: Apache-2.0
//! Whether a series grows: the slope of Theil (1950) and Sen (1968), the median of the slopes between all pairs of
//! points. Up to 29 % of the points may be anything, so that a churn's steps and spikes do not decide.

use std::time::Duration;

use weir_report::median;

/// Slopes of so many points are all looked at; of more, evenly chosen ones.
const MOST_POINTS: usize = 600;

/// How a series runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// What it grows in [`PER`] at its slope.
    pub growth: f64,
    /// Its usual value.
    pub median: f64,
}

/// What growth is told for.
pub const PER: Duration = Duration::from_secs(30 * 60);

/// The trend of points `(seconds, value)`; none of fewer than three moments.
#[must_use]
pub fn trend(points: &[(f64, f64)]) -> Option<Trend> {
    let step = points.len().div_ceil(MOST_POINTS).max(1);
    let points: Vec<_> = points.iter().step_by(step).collect();
    let mut slopes = Vec::new();
    for (n, (x, y)) in points.iter().enumerate() {
        for (later, value) in &points[n + 1..] {
            if later > x {
                slopes.push((value - y) / (later - x));
            }
        }
    }
    if slopes.len() < 3 {
        return None;
    }
    Some(Trend {
        growth: median(&slopes)? * PER.as_secs_f64(),
        median: median(&points.iter().map(|(_, y)| *y).collect::<Vec<_>>())?,
    })
}

/// What growth is allowed: a share of the usual value, or so much, whichever is more.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Of the median.
    pub share: f64,
    /// In the series' own unit.
    pub least: f64,
}

impl Bound {
    /// The most that a series of this median may grow in [`PER`].
    #[must_use]
    pub fn of(self, median: f64) -> f64 {
        (self.share * median).max(self.least)
    }

    /// Whether it grows by more.
    #[must_use]
    pub fn is_passed(self, trend: Trend) -> bool {
        trend.growth > self.of(trend.median)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOUND: Bound = Bound {
        share: 0.05,
        least: 2.0,
    };

    /// Half an hour's second half, a sample each 5 s.
    fn series(value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        (180..360)
            .map(|n| (f64::from(n) * 5.0, value(f64::from(n) * 5.0)))
            .collect()
    }

    fn leaks(points: &[(f64, f64)]) -> bool {
        BOUND.is_passed(trend(points).unwrap())
    }

    #[test]
    fn a_line_has_its_own_slope_whatever_a_quarter_of_its_points_is() {
        let mut points = series(|x| 100.0 + x / 180.0);
        assert!((trend(&points).unwrap().growth - 10.0).abs() < 1e-9);
        for point in points.iter_mut().step_by(4) {
            point.1 = 1e6;
        }
        let growth = trend(&points).unwrap().growth;
        assert!((9.0..20.0).contains(&growth), "{growth}");
    }

    #[test]
    fn too_few_points_have_no_trend() {
        assert_eq!(trend(&[]), None);
        assert_eq!(trend(&[(0.0, 1.0), (1.0, 2.0)]), None);
        assert_eq!(trend(&[(1.0, 1.0), (1.0, 2.0), (1.0, 3.0)]), None);
    }

    #[test]
    fn a_step_at_which_a_cache_fills_early_is_no_leak() {
        assert!(!leaks(&series(|x| if x < 1000.0 { 90.0 } else { 100.0 })));
    }

    proptest! {
        /// A sawtooth of collections, a churn of a minute and noise: none of it is a leak.
        #[test]
        fn noise_is_not_called_a_leak(
            noise in proptest::collection::vec(-1.0f64..1.0, 180),
            level in 20.0f64..500.0,
        ) {
            let points = series(|x| level * (1.0 + 0.05 * ((x / 60.0).fract() - 0.5)));
            let noisy: Vec<_> = points
                .iter()
                .zip(&noise)
                .map(|((x, y), n)| (*x, y + 0.02 * level * n))
                .collect();
            prop_assert!(!leaks(&noisy), "{:?}", trend(&noisy));
        }

        /// The same with a tenth more each half an hour, and at least twice what is allowed.
        #[test]
        fn a_leak_under_noise_is_called_one(
            noise in proptest::collection::vec(-1.0f64..1.0, 180),
            level in 50.0f64..500.0,
        ) {
            let leak = (0.1 * level).max(2.0 * BOUND.least) / PER.as_secs_f64();
            let points = series(|x| level * (1.0 + 0.05 * ((x / 60.0).fract() - 0.5)) + leak * x);
            let noisy: Vec<_> = points
                .iter()
                .zip(&noise)
                .map(|((x, y), n)| (*x, y + 0.02 * level * n))
                .collect();
            prop_assert!(leaks(&noisy), "{:?}", trend(&noisy));
        }
    }
}
