// SPDX-License-Identifier: Apache-2.0
//! How much work calls of a hot function are.

/// Work is counted in seconds at the node's highest frequency, in buckets whose ends are a factor apart.
pub(in crate::frequency) const BUCKETS: usize = 96;
/// End of the first bucket: 100 µs.
const FIRST: f64 = 1e-4;
/// Buckets a factor of two: the last ends at 1400 s.
const EACH_DOUBLING: f64 = 4.0;
/// Calls that are remembered; then each counts for half.
const REMEMBERED: f64 = 2000.0;
/// Fewer say nothing about the tail.
const ENOUGH: f64 = 50.0;

/// Where so much work is counted.
pub(in crate::frequency) fn bucket(work: f64) -> usize {
    let place = (EACH_DOUBLING * (work / FIRST).log2()).ceil();
    // Not a number, and what is below the first, become 0.
    (place as usize).min(BUCKETS - 1)
}

/// Where a bucket ends.
pub(in crate::frequency) fn end(bucket: usize) -> f64 {
    FIRST * (bucket as f64 / EACH_DOUBLING).exp2()
}

/// Work that is left, in seconds at the highest frequency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::frequency) struct Left {
    /// So much it is at most, with the probability that was asked for.
    pub(in crate::frequency) quantile: f64,
    mean: f64,
    variance: f64,
}

impl Left {
    /// One after the other, as if their sum were normal.
    pub(in crate::frequency) fn and(&self, next: &Self, quantile: f64) -> Self {
        let (mean, variance) = (self.mean + next.mean, self.variance + next.variance);
        Self {
            quantile: mean + deviations(quantile) * variance.sqrt(),
            mean,
            variance,
        }
    }
}

/// So many standard deviations above the mean is this quantile of a normal distribution, from 0.5 on: to within
/// 0.0045 by the approximation 26.2.22 of Abramowitz and Stegun, *Handbook of Mathematical Functions*.
fn deviations(quantile: f64) -> f64 {
    let t = (-2.0 * (1.0 - quantile).ln()).sqrt();
    t - (2.30753 + 0.27061 * t) / (1.0 + t * (0.99229 + 0.04481 * t))
}

/// Calls that have ended, by their work.
#[derive(Clone, Debug)]
pub(in crate::frequency) struct Works {
    counts: [f64; BUCKETS],
    sum: f64,
}

impl Default for Works {
    fn default() -> Self {
        Self {
            counts: [0.0; BUCKETS],
            sum: 0.0,
        }
    }
}

impl Works {
    pub(in crate::frequency) fn add(&mut self, work: f64) {
        self.counts[bucket(work)] += 1.0;
        self.sum += 1.0;
        if self.sum >= REMEMBERED {
            self.counts.iter_mut().for_each(|count| *count /= 2.0);
            self.sum /= 2.0;
        }
    }

    /// Share of the calls that are still running when a bucket's work begins; nothing where too few are known.
    pub(in crate::frequency) fn survivors(&self) -> Option<[f64; BUCKETS]> {
        if self.sum < ENOUGH {
            return None;
        }
        let mut left = self.sum;
        Some(self.counts.map(|count| {
            let before = left;
            left -= count;
            (before / self.sum).clamp(0.0, 1.0)
        }))
    }

    /// What is left of a call that has done so much; nothing where too few are known. Of one that has done more than
    /// any other it is nothing more than its bucket.
    pub(in crate::frequency) fn left(&self, done: f64, quantile: f64) -> Option<Left> {
        if self.sum < ENOUGH {
            return None;
        }
        let first = bucket(done);
        let all: f64 = self.counts[first..].iter().sum();
        if all <= 0.0 {
            let quantile = (end(first) - done).max(0.0);
            return Some(Left {
                quantile,
                mean: quantile,
                variance: 0.0,
            });
        }
        let (mut seen, mut sum, mut squares, mut at) = (0.0, 0.0, 0.0, None);
        for (place, count) in self.counts.iter().enumerate().skip(first) {
            let left = (end(place) - done).max(0.0);
            seen += count;
            sum += count * left;
            squares += count * left * left;
            if at.is_none() && seen >= quantile * all {
                at = Some(left);
            }
        }
        let mean = sum / all;
        Some(Left {
            quantile: at.unwrap_or(mean),
            mean,
            variance: (squares / all - mean * mean).max(0.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_of_the_normal_distribution_are_as_in_its_tables() {
        for (quantile, wanted) in [(0.5, 0.0), (0.9, 1.2816), (0.95, 1.6449), (0.99, 2.3263)] {
            assert!((deviations(quantile) - wanted).abs() < 0.0045, "{quantile}");
        }
    }
}
