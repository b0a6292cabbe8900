// SPDX-License-Identifier: Apache-2.0
//! What is asked for: a few keys by many, most by few.

use crate::rng::SplitMix64;

/// Zipf's law: the weight of rank k, from 1, is k^-s.
pub struct Zipf {
    /// Weights of the ranks, added up.
    sums: Vec<f64>,
}

impl Zipf {
    /// Of `n` ranks, at least one.
    #[must_use]
    pub fn new(n: usize, s: f64) -> Self {
        let sums = (1..=n).scan(0.0, |sum, rank| {
            *sum += (rank as f64).powf(-s);
            Some(*sum)
        });
        Self {
            sums: sums.collect(),
        }
    }

    /// A rank, from 0, with `unit` uniform in 0..1.
    #[must_use]
    pub fn draw(&self, unit: f64) -> usize {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let rank = self.sums.partition_point(|sum| *sum <= unit * all);
        rank.min(self.sums.len().saturating_sub(1))
    }
}

/// Zipf's law over ranks that are dealt out at random: how often a key is asked for says nothing
/// of its size. That is an assumption, as document 001 does not say.
pub(crate) struct Popularity {
    /// Keys from the most to the least popular.
    by_rank: Vec<usize>,
    ranks: Zipf,
}

impl Popularity {
    /// Of `n` projects, at least one, with the weight of rank k being k^-s.
    pub(crate) fn new(n: usize, s: f64, rng: &mut SplitMix64) -> Self {
        let mut by_rank: Vec<usize> = (0..n).collect();
        // Fisher and Yates, in the form of Durstenfeld (CACM algorithm 235, 1964).
        for last in (1..n).rev() {
            let other = (rng.unit() * (last + 1) as f64) as usize;
            by_rank.swap(last, other);
        }
        let ranks = Zipf::new(n, s);
        Self { by_rank, ranks }
    }

    /// A key, with `unit` uniform in 0..1.
    pub(crate) fn draw(&self, unit: f64) -> usize {
        self.by_rank[self.ranks.draw(unit)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Share of each rank in many draws.
    fn shares(n: usize, s: f64) -> Vec<f64> {
        let mut rng = SplitMix64::new(1);
        let popularity = Popularity::new(n, s, &mut rng);
        let mut counts = vec![0.0; n];
        for _ in 0..100_000 {
            counts[popularity.draw(rng.unit())] += 1e-5;
        }
        popularity.by_rank.iter().map(|at| counts[*at]).collect()
    }

    #[test]
    fn the_second_rank_has_half_of_the_first_and_the_third_a_third() {
        let shares = shares(10, 1.0);
        let harmonic: f64 = (1..=10).map(|k| 1.0 / f64::from(k)).sum();
        for (at, share) in shares.iter().enumerate() {
            let expected = 1.0 / (at + 1) as f64 / harmonic;
            assert!((share - expected).abs() < 0.01, "rank {}: {share}", at + 1);
        }
    }

    #[test]
    fn the_first_key_is_asked_for_twice_as_often_as_the_second_and_each_is() {
        const KEYS: usize = 60;
        let keys = Zipf::new(KEYS, 1.0);
        let mut counts = [0_u32; KEYS];
        for step in 0..100_000 {
            counts[keys.draw(f64::from(step) / 100_000.0)] += 1;
        }
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
        assert!(counts.iter().all(|count| *count > 0));
    }

    #[test]
    fn an_exponent_of_0_makes_all_alike() {
        assert!(
            shares(4, 0.0)
                .iter()
                .all(|share| (share - 0.25).abs() < 0.01)
        );
    }

    proptest! {
        #[test]
        fn every_project_has_one_rank(n in 1usize..200, s in 0f64..3.0, seed: u64, unit in 0f64..1.0) {
            let popularity = Popularity::new(n, s, &mut SplitMix64::new(seed));
            let mut ranks = popularity.by_rank.clone();
            ranks.sort_unstable();
            prop_assert!(ranks.into_iter().eq(0..n));
            prop_assert!(popularity.draw(unit) < n);
        }
    }
}
