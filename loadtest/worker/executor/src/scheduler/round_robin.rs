// SPDX-License-Identifier: Apache-2.0
//! Each actor in turn, for a quantum of core time (document 003, experiment 1).
//!
//! A joblet is not interrupted, so a turn may overrun; what it overran is not owed. An actor that
//! has nothing to run gives up its turn.

use std::time::Duration;

use super::{Actors, Turns, ready};
use crate::Kind;

#[derive(Debug)]
pub(super) struct RoundRobin {
    quantum: Duration,
    turn: Kind,
    used: Duration,
}

impl RoundRobin {
    pub(super) fn new(quantum: Duration) -> Self {
        Self {
            quantum,
            turn: Kind::FeedSource,
            used: Duration::ZERO,
        }
    }
}

impl Turns for RoundRobin {
    fn next(&mut self, actors: &Actors) -> Option<Kind> {
        let keeps_turn = self.used < self.quantum;
        let first = self.turn.index() + usize::from(!keeps_turn);
        let distance = |kind: &Kind| (kind.index() + 2 * Kind::COUNT - first) % Kind::COUNT;
        let kind = ready(actors).min_by_key(distance)?;
        if kind != self.turn || !keeps_turn {
            self.turn = kind;
            self.used = Duration::ZERO;
        }
        Some(kind)
    }

    fn ran(&mut self, kind: Kind, core_time: Duration, _served: usize) {
        if kind == self.turn {
            self.used += core_time;
        }
    }
}
