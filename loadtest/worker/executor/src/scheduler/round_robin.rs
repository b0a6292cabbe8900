// SPDX-License-Identifier: Apache-2.0
//! Each actor in turn, for a quantum of core time (document 003, experiment 1).
//!
//! A joblet is not interrupted, so a turn may overrun; what it overran is not owed. An actor that
//! has nothing to run gives up its turn.

use std::time::Duration;

use super::{Queue, SOURCE, Turns, ready};

#[derive(Debug)]
pub(super) struct RoundRobin {
    quantum: Duration,
    turn: usize,
    used: Duration,
}

impl RoundRobin {
    pub(super) fn new(quantum: Duration) -> Self {
        Self {
            quantum,
            turn: SOURCE,
            used: Duration::ZERO,
        }
    }
}

impl Turns for RoundRobin {
    fn next(&mut self, actors: &[Queue]) -> Option<usize> {
        let keeps_turn = self.used < self.quantum;
        let first = self.turn + usize::from(!keeps_turn);
        let distance = |actor: &usize| (actor + 2 * actors.len() - first) % actors.len();
        let actor = ready(actors).min_by_key(distance)?;
        if actor != self.turn || !keeps_turn {
            self.turn = actor;
            self.used = Duration::ZERO;
        }
        Some(actor)
    }

    fn ran(&mut self, actor: usize, core_time: Duration, _sent: &[usize]) {
        if actor == self.turn {
            self.used += core_time;
        }
    }
}
