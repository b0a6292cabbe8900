// SPDX-License-Identifier: Apache-2.0
//! Which caller sends a request.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::Scenario;

/// Deals senders to callers by hash: a burst of one sender stays with one caller, as in a mesh. A request without a
/// sender is one of its own. Never in turn, which would give every caller the same load at every moment.
#[derive(Debug)]
pub(crate) struct Deal {
    callers: usize,
    /// Share of the senders that the first caller has.
    heavy: Option<f64>,
    seed: u64,
}

impl Deal {
    pub(crate) fn new(scenario: &Scenario) -> Self {
        Self {
            callers: scenario.callers,
            heavy: scenario.heavy_caller,
            seed: scenario.seed,
        }
    }

    /// The caller of a sender; without one, of this request.
    pub(crate) fn caller(&self, sender: Option<u64>, request: u32) -> usize {
        let who = sender.unwrap_or_else(|| request.into());
        let mut rng = SmallRng::seed_from_u64(self.seed.rotate_left(32) ^ who);
        match self.heavy {
            _ if self.callers == 1 => 0,
            Some(share) if rng.random::<f64>() < share => 0,
            Some(_) => rng.random_range(1..self.callers),
            None => rng.random_range(0..self.callers),
        }
    }
}
