// SPDX-License-Identifier: Apache-2.0
//! A search for the numbers that bring out what document 002 says.
//!
//! Seeded hill climbing, as for document 001: a few numbers are moved at random, by a factor drawn about one; what
//! comes nearer is kept.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::super::Params;
use super::super::cell::Lab;
use super::facts::facts;
use crate::draws::normal;

/// What is fitted, and within which bounds it is plausible. The others are fixed.
pub const FREE: [(&str, f64, f64); 14] = [
    ("light_ms", 30.0, 200.0),
    ("growth", 0.8, 1.6),
    ("spread", 0.3, 1.8),
    ("memory_share", 0.001, 0.3),
    ("shard_sigma", 0.02, 0.4),
    ("zipf", 0.5, 3.0),
    ("before_share", 0.005, 0.15),
    ("low_volts", 0.35, 0.85),
    ("core_w", 3.0, 12.0),
    ("leak_w", 0.1, 2.0),
    ("package_w", 1.0, 30.0),
    ("uncore_w", 1.0, 40.0),
    ("agent_event_ms", 1.0, 60.0),
    ("agent_tick_ms", 0.01, 5.0),
];

/// A search needs many runs: of 4 minutes instead of 20.
const SHORTER: u32 = 5;

/// How far off the facts are that the model is fitted to: mean of the squares.
#[must_use]
pub fn distance(params: &Params, seeds: u64) -> f64 {
    let facts = facts(&mut Lab::new(params.clone(), seeds).shorter(SHORTER), true);
    let fitted: Vec<f64> = facts
        .iter()
        .filter(|fact| fact.fitted)
        .map(|fact| fact.wanted.miss(fact.mean()).powi(2))
        .collect();
    fitted.iter().sum::<f64>() / fitted.len() as f64
}

/// Climbs from `start`; `tell` is shown what comes nearer.
pub fn climb(
    start: &Params,
    seeds: u64,
    tries: u32,
    seed: u64,
    mut tell: impl FnMut(u32, f64, &Params),
) -> Params {
    let mut rng = SmallRng::seed_from_u64(seed);
    let (mut best, mut least) = (start.clone(), distance(start, seeds));
    tell(0, least, &best);
    let mut step = 0.2;
    for number in 1..=tries {
        let mut moved = best.clone();
        for _ in 0..rng.random_range(1..=3) {
            let (name, low, high) = FREE[rng.random_range(0..FREE.len())];
            let value = moved.get(name).unwrap_or(low) * (step * normal(&mut rng)).exp();
            // Within bounds it is a number above 0, and the name is ours.
            let _ = moved.set(name, value.clamp(low, high));
        }
        let found = distance(&moved, seeds);
        if found < least {
            (best, least) = (moved, found);
            step = f64::min(step * 1.3, 0.3);
            tell(number, least, &best);
        } else {
            step = f64::max(step * 0.97, 0.02);
        }
    }
    best
}
