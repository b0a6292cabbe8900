// SPDX-License-Identifier: Apache-2.0
//! How much work a query is: from a recorded table.
//!
//! `loadtest/traces/search_union_lucene.csv` has times of 301 queries of Lucene, the library that Elasticsearch
//! searches with: any of the terms, the ten best, as a match query of Elasticsearch is. Only those of three terms are
//! many and alike enough, so a query of n terms is n/3 of these. Their mean is scaled to `light_ms`.

use rand::RngExt;
use rand::rngs::SmallRng;

use super::Params;
use crate::draws::normal;

const TABLE: &str = include_str!("../../../traces/search_union_lucene.csv");
/// Of the queries that others are put together from.
const PIECE: u32 = 3;

/// Draws queries.
#[derive(Debug)]
pub(super) struct Queries {
    params: Params,
    /// Recorded times against their mean.
    pieces: Vec<f64>,
}

impl Queries {
    pub(super) fn new(params: &Params) -> Self {
        let time = |line: &str| {
            let mut fields = line.split(',');
            let terms: u32 = fields.nth(1)?.parse().ok()?;
            let median_us: f64 = fields.nth(6)?.parse().ok()?;
            (terms == PIECE).then(|| median_us.powf(params.spread))
        };
        let mut pieces: Vec<f64> = TABLE.lines().filter_map(time).collect();
        let mean = pieces.iter().sum::<f64>() / pieces.len() as f64;
        for piece in &mut pieces {
            *piece /= mean;
        }
        Self {
            params: params.clone(),
            pieces,
        }
    }

    /// Work of each shard in nanoseconds at 2.6 GHz.
    pub(super) fn draw(&self, terms: u32, rng: &mut SmallRng) -> Vec<f64> {
        let params = &self.params;
        let (mut left, mut sum) = (terms, 0.0);
        while left > 0 {
            let part = left.min(PIECE);
            sum += f64::from(part) * self.pieces[rng.random_range(0..self.pieces.len())];
            left -= part;
        }
        let mean_ns = params.light_ms * 1e6 * (f64::from(terms) / 4.0).powf(params.growth);
        let query_ns = mean_ns * sum / f64::from(terms);
        let sigma = params.shard_sigma;
        let shard = |_| query_ns * (sigma * normal(rng) - sigma * sigma / 2.0).exp();
        (0..params.shards as usize).map(shard).collect()
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;

    use super::*;

    #[test]
    fn mean_work_is_what_the_parameters_say_at_every_length() {
        let params = Params::default();
        let queries = Queries::new(&params);
        assert_eq!(queries.pieces.len(), 83, "rows of three terms");
        let mut rng = SmallRng::seed_from_u64(1);
        for terms in [1, 4, 16] {
            let drawn = (0..20_000).map(|_| queries.draw(terms, &mut rng)[0]);
            let mean_ms = drawn.sum::<f64>() / 20_000.0 / 1e6;
            let wanted_ms = params.light_ms * (f64::from(terms) / 4.0).powf(params.growth);
            assert!(
                (mean_ms / wanted_ms - 1.0).abs() < 0.03,
                "{terms}: {mean_ms}"
            );
        }
    }
}
