// SPDX-License-Identifier: Apache-2.0
//! When jobs come: Poisson arrivals, whose rate may rise.

use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use weir_replay::arrivals::{self, Rate};

/// A seeded generator of arrivals.
#[derive(Debug)]
pub(crate) struct Arrivals(StdRng);

impl Arrivals {
    pub(crate) fn new(seed: u64) -> Self {
        Self(StdRng::seed_from_u64(seed))
    }

    /// A rate that rises evenly from 0 to `top` a second.
    pub(crate) fn rising(&mut self, top: f64, lasts: Duration) -> Vec<Duration> {
        self.at(Rate { from: 0.0, to: top }, lasts)
    }

    /// An even rate.
    pub(crate) fn even(&mut self, rate: f64, lasts: Duration) -> Vec<Duration> {
        let (from, to) = (rate, rate);
        self.at(Rate { from, to }, lasts)
    }

    /// One of `0..n`.
    pub(crate) fn pick(&mut self, n: usize) -> usize {
        self.0.random_range(0..n)
    }

    /// True with this probability.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        self.0.random_bool(share)
    }

    fn at(&mut self, rate: Rate, lasts: Duration) -> Vec<Duration> {
        let mut arrivals = arrivals::Arrivals::new(&rate, lasts);
        std::iter::from_fn(|| arrivals.next(self.0.random())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rising_rate_has_a_quarter_of_its_arrivals_in_the_first_half() {
        let all = Arrivals::new(1).rising(200.0, Duration::from_secs(600));
        let early = all.iter().filter(|at| at.as_secs() < 300).count();
        assert!((58_000..62_000).contains(&all.len()), "{}", all.len());
        assert!((14_000..16_000).contains(&early), "{early}");
        assert!(all.is_sorted());
    }

    #[test]
    fn the_same_seed_gives_the_same_arrivals() {
        let lasts = Duration::from_secs(10);
        assert_eq!(
            Arrivals::new(7).even(50.0, lasts),
            Arrivals::new(7).even(50.0, lasts)
        );
    }
}
