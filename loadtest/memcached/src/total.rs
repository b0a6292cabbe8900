// SPDX-License-Identifier: Apache-2.0
//! A whole run.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use crate::interval::{Counts, Figures, Interval, Latency, histogram};

/// Sums up intervals.
#[derive(Debug)]
pub struct Total {
    intervals: u64,
    violated: u64,
    counts: Counts,
    latency: Histogram<u64>,
}

/// A run, told.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Summary {
    /// How many there were,
    pub intervals: u64,
    /// and in how many fewer than 95 of 100 requests were answered within the limit.
    pub violated: u64,
    /// Their share, as document 004 reports it.
    pub violated_share: f64,
    /// The limit.
    pub slo_us: u64,
    /// Requests.
    #[serde(flatten)]
    pub counts: Counts,
    /// Of all intervals together.
    #[serde(flatten)]
    pub latency: Latency,
}

impl Default for Total {
    fn default() -> Self {
        Self {
            intervals: 0,
            violated: 0,
            counts: Counts::default(),
            latency: histogram(),
        }
    }
}

impl Total {
    /// Adds an interval that is over, with its figures.
    pub fn add(&mut self, interval: &Interval, figures: &Figures) {
        let Counts {
            due,
            answered,
            errors,
            dropped,
            misses,
        } = figures.counts;
        self.intervals += 1;
        self.violated += u64::from(figures.violated);
        self.counts.due += due;
        self.counts.answered += answered;
        self.counts.errors += errors;
        self.counts.dropped += dropped;
        self.counts.misses += misses;
        if let Some(latency) = interval.latency() {
            self.latency
                .add(latency)
                .expect("all histograms have the same bounds");
        }
    }

    /// What was seen with a limit of so many microseconds.
    #[must_use]
    pub fn summary(&self, slo_us: u64) -> Summary {
        Summary {
            intervals: self.intervals,
            violated: self.violated,
            violated_share: self.violated as f64 / self.intervals.max(1) as f64,
            slo_us,
            counts: self.counts,
            latency: Latency::of(Some(&self.latency), self.counts.due),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schedule::Step;

    #[test]
    fn a_run_is_the_sum_of_its_intervals() {
        let mut total = Total::default();
        for latency_us in [100, 5_000] {
            let mut interval = Interval::new(
                0,
                Step {
                    start_ns: 0,
                    end_ns: 1_000_000_000,
                    rate: 1.0,
                },
            );
            interval.sent(0, 1);
            interval.answered(latency_us * 1_000, 3);
            total.add(&interval, &interval.figures(1_000));
        }
        let summary = total.summary(1_000);
        assert_eq!((summary.intervals, summary.violated), (2, 1));
        assert_eq!(summary.violated_share, 0.5);
        assert_eq!(summary.latency.p50_us, Some(100));
        assert_eq!((summary.counts.answered, summary.counts.misses), (2, 6));
    }
}
