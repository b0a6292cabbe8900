// SPDX-License-Identifier: Apache-2.0
//! What is asked for, by seed: the same for however many sidecars.

use std::iter;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

/// Who sends requests; all of one come through one sidecar.
const SOURCES: usize = 1_024;
/// The key of rank n is asked for in proportion to n to the power of minus this.
const ZIPF: f64 = 0.9;

pub(crate) struct Workload {
    /// Requests a second, which come at random.
    pub(crate) rate: f64,
    /// Mean core time of one without a fetch.
    pub(crate) run: Duration,
    pub(crate) keys: usize,
}

pub(crate) struct Asked {
    pub(crate) at: Duration,
    pub(crate) source: usize,
    pub(crate) key: Arc<str>,
    pub(crate) run: Duration,
}

impl Workload {
    /// Requests between these times.
    pub(crate) fn asked(&self, seed: u64, times: Range<Duration>) -> Vec<Asked> {
        let mut rng = SmallRng::seed_from_u64(seed);
        let keys = Keys::new(self.keys);
        let mut at = times.start;
        let next = || {
            let gap = -(1.0 - rng.random_range(0.0..1.0_f64)).ln() / self.rate;
            at += Duration::from_secs_f64(gap);
            (at < times.end).then(|| Asked {
                at,
                source: rng.random_range(0..SOURCES),
                key: keys.at(rng.random_range(0.0..1.0)),
                run: self.run.mul_f64(rng.random_range(0.5..1.5)),
            })
        };
        iter::from_fn(next).collect()
    }
}

/// Keys and the parts of all requests that are for them or for more popular ones.
struct Keys(Vec<(f64, Arc<str>)>);

impl Keys {
    fn new(keys: usize) -> Self {
        let weight = |rank: usize| (rank as f64).powf(-ZIPF);
        let all: f64 = (1..=keys).map(weight).sum();
        let mut sum = 0.0;
        let key = |rank: usize| {
            sum += weight(rank) / all;
            (sum, format!("key-{rank}").into())
        };
        Self((1..=keys).map(key).collect())
    }

    fn at(&self, part: f64) -> Arc<str> {
        let rank = self.0.partition_point(|(sum, _)| *sum < part);
        self.0[rank.min(self.0.len() - 1)].1.clone()
    }
}
