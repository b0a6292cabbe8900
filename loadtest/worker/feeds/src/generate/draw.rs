// SPDX-License-Identifier: Apache-2.0
//! Randomness that follows from the seed.

use rand::rngs::Xoshiro256PlusPlus;
use rand::{RngExt, SeedableRng};
use sha2::{Digest, Sha256};

/// A named algorithm, so that the same seed gives the same files with later versions of `rand`.
pub(super) type Draw = Xoshiro256PlusPlus;

/// Draws for one `purpose` of the project `at`, independent of all others.
pub(super) fn of(seed: u64, purpose: &str, at: usize) -> Draw {
    let digest = Sha256::new()
        .chain_update(seed.to_le_bytes())
        .chain_update((at as u64).to_le_bytes())
        .chain_update(purpose)
        .finalize();
    Draw::from_seed(digest.into())
}

/// One of `of`, each as likely.
pub(super) fn any<'a, T: ?Sized>(of: &[&'a T], draw: &mut Draw) -> &'a T {
    of[draw.random_range(0..of.len())]
}

/// Ranks drawn by Zipf's law: rank `k`, from 1, has a weight of `1/k`.
///
/// G. K. Zipf, Human Behavior and the Principle of Least Effort, 1949: so words of a language occur.
#[derive(Debug)]
pub(super) struct Zipf(Vec<f64>);

impl Zipf {
    pub(super) fn new(ranks: usize) -> Self {
        let mut sum = 0.0;
        let weigh = |rank: usize| {
            sum += 1.0 / rank as f64;
            sum
        };
        Self((1..=ranks).map(weigh).collect())
    }

    /// A rank, from 0.
    pub(super) fn rank(&self, draw: &mut Draw) -> usize {
        let total = self.0.last().copied().unwrap_or_default();
        let at = draw.random::<f64>() * total;
        let rank = self.0.partition_point(|sum| *sum <= at);
        rank.min(self.0.len().saturating_sub(1))
    }
}
