// SPDX-License-Identifier: Apache-2.0
//! How long it is measured.

use std::time::Duration;

pub(super) struct Plan {
    pub(super) rounds: usize,
    /// Of each way and case, in each round.
    pub(super) slice: Duration,
    /// Before each, and not counted.
    pub(super) warm_up: Duration,
}

impl Plan {
    pub(super) fn new(quick: bool) -> Self {
        let (rounds, slice, warm_up) = if quick {
            (2, 600, 150)
        } else {
            (15, 1000, 150)
        };
        Self {
            rounds,
            slice: Duration::from_millis(slice),
            warm_up: Duration::from_millis(warm_up),
        }
    }
}
