// SPDX-License-Identifier: Apache-2.0
//! Factors by chance.

use rand::RngExt;
use rand::rngs::SmallRng;

/// A lognormal number around 1, by twelve uniform ones.
pub(super) fn lognormal(rng: &mut SmallRng, sigma: f64) -> f64 {
    let sum: f64 = (0..12).map(|_| rng.random_range(0.0..1.0)).sum();
    ((sum - 6.0) * sigma).exp()
}
