// SPDX-License-Identifier: Apache-2.0
//! Distributions and moments of a stream of numbers.

use hdrhistogram::Histogram;
use serde::Serialize;

/// Three significant digits: an error of at most 0.1 %.
const DIGITS: u8 = 3;

/// A distribution, mean exact and percentiles to three digits.
#[derive(Debug, Clone, Serialize)]
pub struct Distribution {
    /// Values.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// The median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 95th percentile.
    pub p95: f64,
    /// 99th percentile.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// A histogram of numbers in steps of 1 / `scale`.
#[derive(Debug)]
pub(super) struct Tally {
    histogram: Histogram<u64>,
    sum: f64,
    max: f64,
    scale: f64,
}

impl Tally {
    pub(super) fn new(scale: f64) -> Self {
        // From 1 step up to 10^13: eleven days of microseconds. 3 digits are always accepted.
        let histogram = Histogram::new_with_bounds(1, 10_000_000_000_000, DIGITS);
        Self {
            histogram: histogram.unwrap_or_else(|_| unreachable!("constant bounds")),
            sum: 0.0,
            max: 0.0,
            scale,
        }
    }

    pub(super) fn add(&mut self, value: f64) {
        self.sum += value;
        self.max = self.max.max(value);
        self.histogram
            .saturating_record((value * self.scale).round() as u64);
    }

    pub(super) fn distribution(&self) -> Distribution {
        let count = self.histogram.len();
        let at = |q| (self.histogram.value_at_quantile(q) as f64 / self.scale).min(self.max);
        Distribution {
            count,
            mean: if count > 0 {
                self.sum / count as f64
            } else {
                0.0
            },
            p50: at(0.5),
            p90: at(0.9),
            p95: at(0.95),
            p99: at(0.99),
            max: self.max,
        }
    }
}

/// Mean and variance in one pass (Welford 1962).
#[derive(Debug, Default)]
pub(super) struct Moments {
    n: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    pub(super) fn add(&mut self, value: f64) {
        self.n += 1.0;
        let delta = value - self.mean;
        self.mean += delta / self.n;
        self.squares += delta * (value - self.mean);
    }

    pub(super) fn mean(&self) -> f64 {
        self.mean
    }

    pub(super) fn variance(&self) -> f64 {
        if self.n > 0.0 {
            self.squares / self.n
        } else {
            0.0
        }
    }
}
