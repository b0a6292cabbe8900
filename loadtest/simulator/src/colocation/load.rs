// SPDX-License-Identifier: Apache-2.0
//! mcperf's dynamic load: a new rate each interval, anything between two limits as likely as the rest.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Requests a second (part 4.2).
pub(super) const LEAST: f64 = 5_000.0;
/// See [`LEAST`].
pub(super) const MOST: f64 = 100_000.0;
/// Seconds of load (part 4.3).
pub(super) const SECONDS: f64 = 1800.0;

/// The rate of each interval. mcperf's own sequence for a seed is not public: these are others.
pub(super) fn rates(interval_s: f64, seed: u64) -> Vec<f64> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let n = (SECONDS / interval_s).round() as usize;
    (0..n).map(|_| rng.random_range(LEAST..MOST)).collect()
}
