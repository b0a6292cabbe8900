// SPDX-License-Identifier: Apache-2.0
//! Draws from two laws.

use rand::RngExt;
use rand::rngs::SmallRng;

/// Standard normal (Box and Muller, 1958).
pub(crate) fn normal(rng: &mut SmallRng) -> f64 {
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    radius * (std::f64::consts::TAU * rng.random::<f64>()).cos()
}

pub(crate) fn exponential(mean: f64, rng: &mut SmallRng) -> f64 {
    -mean * (1.0 - rng.random::<f64>()).ln()
}
