// SPDX-License-Identifier: Apache-2.0
//! When jobs come: a Poisson process whose rate stays the same or changes evenly.

use std::time::Duration;

use serde::Serialize;

/// Jobs a second, from the beginning to the end of the workload.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Rate {
    /// At the beginning.
    pub from: f64,
    /// At the end; it rises or falls along a line.
    pub to: f64,
}

impl Rate {
    /// How many jobs come on average.
    #[must_use]
    pub fn expected(&self, duration: Duration) -> f64 {
        (self.from + self.to) / 2.0 * duration.as_secs_f64()
    }
}

/// The instants, by inversion of the cumulative rate: those of a process with one job a second,
/// each moved to where the rate has added up to as much (Çinlar, Introduction to Stochastic
/// Processes, 1975, section 4.7).
pub struct Arrivals {
    from: f64,
    /// Half of what the rate changes by in a second.
    bend: f64,
    end: f64,
    /// The rate added up until the last instant.
    sum: f64,
}

impl Arrivals {
    /// Of a workload that lasts so long.
    #[must_use]
    pub fn new(rate: &Rate, duration: Duration) -> Self {
        let seconds = duration.as_secs_f64();
        Self {
            from: rate.from,
            bend: (rate.to - rate.from) / (2.0 * seconds),
            end: rate.expected(duration),
            sum: 0.0,
        }
    }

    /// The next instant from the start, with `unit` uniform in 0..1; `None` after the end.
    pub fn next(&mut self, unit: f64) -> Option<Duration> {
        // Exponential; 1 - unit is never 0.
        self.sum -= (1.0 - unit).ln();
        if self.sum >= self.end {
            return None;
        }
        // The root of bend·t² + from·t = sum, in the form that does not divide by a bend of 0.
        let root = (self.from * self.from + 4.0 * self.bend * self.sum)
            .max(0.0)
            .sqrt();
        Duration::try_from_secs_f64(2.0 * self.sum / (self.from + root)).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::SplitMix64;
    use proptest::prelude::*;

    fn instants(from: f64, to: f64, seconds: u64, seed: u64) -> Vec<f64> {
        let mut rng = SplitMix64::new(seed);
        let duration = Duration::from_secs(seconds);
        let mut arrivals = Arrivals::new(&Rate { from, to }, duration);
        let next = || arrivals.next(rng.unit()).map(|at| at.as_secs_f64());
        std::iter::from_fn(next).collect()
    }

    #[test]
    fn an_even_rate_has_exponential_gaps() {
        let at = instants(100.0, 100.0, 1000, 1);
        // 100,000 are expected; six deviations of a Poisson number are 1,900.
        assert!((98_100..101_900).contains(&at.len()), "{}", at.len());
        let gaps: Vec<f64> = at.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let longer = |than: f64| gaps.iter().filter(|gap| **gap > than).count() as f64;
        for than in [0.005, 0.01, 0.03] {
            let share = longer(than) / gaps.len() as f64;
            assert!(
                (share - (-100.0 * than).exp()).abs() < 0.01,
                "{than}: {share}"
            );
        }
    }

    #[test]
    fn a_ramp_from_0_brings_a_quarter_in_the_first_half() {
        let at = instants(0.0, 200.0, 600, 1);
        assert!((58_500..61_500).contains(&at.len()), "{}", at.len());
        let early = at.iter().filter(|at| **at < 300.0).count() as f64;
        assert!((early / at.len() as f64 - 0.25).abs() < 0.01, "{early}");
    }

    proptest! {
        #[test]
        fn instants_rise_and_end_with_the_workload(
            from in 0f64..50.0, to in 0f64..50.0, seconds in 1u64..100, seed: u64,
        ) {
            let at = instants(from, to, seconds, seed);
            prop_assert!(at.is_sorted());
            prop_assert!(at.iter().all(|at| *at <= seconds as f64 + 1e-6));
            let expected = Rate { from, to }.expected(Duration::from_secs(seconds));
            prop_assert!((at.len() as f64 - expected).abs() < 7.0 * expected.sqrt() + 12.0);
        }
    }
}
