// SPDX-License-Identifier: Apache-2.0
//! What is asked for: a few keys by many, most by few.

/// Keys in all.
const KEYS: usize = 60;

/// Zipf's law with exponent 1: the key of rank k has weight 1/k.
pub(super) struct Keys {
    /// Weights of the ranks, added up.
    sums: Vec<f64>,
}

impl Keys {
    pub(super) fn new() -> Self {
        let sums = (1..=KEYS).scan(0.0, |sum, rank| {
            *sum += 1.0 / rank as f64;
            Some(*sum)
        });
        Self {
            sums: sums.collect(),
        }
    }

    /// A key, with `unit` uniform in 0..1.
    pub(super) fn draw(&self, unit: f64) -> usize {
        let all = self.sums.last().copied().unwrap_or(0.0);
        let rank = self.sums.partition_point(|sum| *sum <= unit * all);
        rank.min(KEYS - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_key_is_asked_for_twice_as_often_as_the_second_and_each_is() {
        let keys = Keys::new();
        let mut counts = [0_u32; KEYS];
        for step in 0..100_000 {
            counts[keys.draw(f64::from(step) / 100_000.0)] += 1;
        }
        let ratio = f64::from(counts[0]) / f64::from(counts[1]);
        assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
        assert!(counts.iter().all(|count| *count > 0));
    }
}
