// SPDX-License-Identifier: Apache-2.0
//! Lines for hours: one value for each of some hundred equal times, for what goes up and down in each of them
//! would be drawn as a block.

/// Values that a line has at most.
const MOST: usize = 400;

/// Equal times.
#[derive(Clone, Copy, Debug)]
pub(super) struct Coarse {
    /// Of one.
    pub seconds: f64,
    count: usize,
}

impl Coarse {
    /// None where so many points can be told apart.
    pub(super) fn of(length: f64, points: usize) -> Option<Self> {
        let is_needed = points > 3 * MOST && length > 0.0;
        is_needed.then_some(Self {
            seconds: length / MOST as f64,
            count: MOST,
        })
    }

    /// Means over time of what holds until the next point. Where there is none, not a number.
    pub(super) fn held(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        let mut sums = vec![(0.0, 0.0); self.count];
        for pair in points.windows(2).filter(|pair| pair[0].1.is_finite()) {
            let [(from, value), (to, _)] = [pair[0], pair[1]];
            for (n, (sum, time)) in sums.iter_mut().enumerate().skip(self.place(from)) {
                let (left, right) = (n as f64 * self.seconds, (n + 1) as f64 * self.seconds);
                if left >= to {
                    break;
                }
                let spent = (to.min(right) - from.max(left)).max(0.0);
                *sum += value * spent;
                *time += spent;
            }
        }
        self.points(sums.into_iter().map(|(sum, time)| sum / time))
    }

    /// What `of` makes of the sorted values of each time.
    pub(super) fn sampled(&self, points: &[(f64, f64)], of: fn(&[f64]) -> f64) -> Vec<(f64, f64)> {
        let mut values = vec![Vec::new(); self.count];
        for (at, value) in points.iter().filter(|(_, value)| value.is_finite()) {
            values[self.place(*at)].push(*value);
        }
        self.points(values.into_iter().map(|mut values| {
            values.sort_unstable_by(f64::total_cmp);
            match values.is_empty() {
                true => f64::NAN,
                false => of(&values),
            }
        }))
    }

    fn place(&self, at: f64) -> usize {
        ((at / self.seconds) as usize).min(self.count - 1)
    }

    /// In the middle of their times. Of neighbours without a value one is enough for the gap.
    fn points(&self, values: impl Iterator<Item = f64>) -> Vec<(f64, f64)> {
        let middle = |(n, value): (usize, f64)| ((n as f64 + 0.5) * self.seconds, value);
        let mut points: Vec<(f64, f64)> = values.enumerate().map(middle).collect();
        points.dedup_by(|next, one| next.1.is_nan() && one.1.is_nan());
        points
    }
}

pub(super) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

pub(super) fn median(values: &[f64]) -> f64 {
    values[values.len() / 2]
}

pub(super) fn highest(values: &[f64]) -> f64 {
    values[values.len() - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_holds_counts_by_its_time_and_samples_count_alike() {
        let coarse = Coarse {
            seconds: 10.0,
            count: 3,
        };
        let nan = f64::NAN;
        let points = [
            (0.0, 1.0),
            (5.0, 2.0),
            (12.0, nan),
            (15.0, 4.0),
            (20.0, 4.0),
        ];
        let held = coarse.held(&points);
        assert_eq!(held[..2], [(5.0, 1.5), (15.0, (4.0 + 20.0) / 7.0)]);
        assert!(held[2].1.is_nan());
        let points = [(1.0, 3.0), (2.0, 1.0), (3.0, 2.0), (29.0, 7.0), (30.0, 9.0)];
        for (of, first, last) in [
            (mean as fn(&[f64]) -> f64, 2.0, 8.0),
            (median, 2.0, 9.0),
            (highest, 3.0, 9.0),
        ] {
            let sampled = coarse.sampled(&points, of);
            assert_eq!((sampled[0].1, sampled[2].1), (first, last));
            assert!(sampled[1].1.is_nan());
        }
    }

    #[test]
    fn few_points_are_drawn_as_they_are() {
        assert!(Coarse::of(1e6, 1200).is_none());
        assert!(Coarse::of(0.0, 9999).is_none());
        assert_eq!(
            Coarse::of(8000.0, 1201).map(|coarse| coarse.seconds),
            Some(20.0)
        );
    }
}
