// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use super::demand::Demand;
use super::evidence::Idleness;
use crate::{Level, Rank};

/// An admission level, and the demand that it moves through.
#[derive(Clone, Debug)]
pub struct MovingLevel {
    level: Level,
    pub(super) demand: Demand,
    pub(super) idleness: Idleness,
}

impl Default for MovingLevel {
    /// Everything is admitted.
    fn default() -> Self {
        Self {
            level: Level::ALL,
            demand: Demand::default(),
            idleness: Idleness::default(),
        }
    }
}

impl MovingLevel {
    /// Goes on from a level that was come to elsewhere, with none of its demand.
    pub fn starting_at(level: Level) -> Self {
        Self {
            level,
            demand: Demand::unseen(level),
            ..Self::default()
        }
    }

    /// The present level.
    pub fn get(&self) -> Level {
        self.level
    }

    /// Takes in a window's requests by rank; older ones count half as much after each `half_life`.
    pub(super) fn remember(
        &mut self,
        requests: &[(Rank, f64)],
        length: Duration,
        half_life: Duration,
    ) {
        self.demand.remember(requests, length, half_life);
    }

    /// Admits everything.
    pub(super) fn open(&mut self) {
        self.level = Level::ALL;
    }

    /// See [`Demand::lowered`]; no lower than to `least`.
    pub(super) fn lower(&mut self, share: f64, reach: f64, least: Level) {
        let lowered = self.demand.lowered(self.level, share, reach);
        self.level = lowered.max(least).min(self.level);
    }

    /// See [`Demand::raised`]; no higher than to `most`.
    pub(super) fn raise(&mut self, share: f64, reach: f64, most: Level) {
        let raised = self.demand.raised(self.level, share, reach);
        self.level = raised.min(most).max(self.level);
    }
}
