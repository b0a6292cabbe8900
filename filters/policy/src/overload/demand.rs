// SPDX-License-Identifier: Apache-2.0
//! What was asked for by rank, forgotten slowly: what a level moves through.
//!
//! It keeps the ranks that were refused, because a level rises into those. It decays instead of starting
//! empty with each window, because a host that takes a few jobs a second leaves windows of 1 s nearly empty.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::{Level, Rank};

/// Weights below this are forgotten: half a request, thirty half-lives ago, is nobody's demand.
const FORGOTTEN: f64 = 1e-9;

/// Weight by rank.
#[derive(Clone, Debug, Default)]
pub(super) struct Demand {
    weights: BTreeMap<Rank, f64>,
}

/// Of each rank where nothing was seen: less than a real request, and not nothing.
const UNSEEN: f64 = 1e-3;

impl Demand {
    /// What a level is begun with: as much for every rank, because nothing was seen yet, so that it neither opens nor
    /// shuts at the first step, as it would where nobody is known to be refused. Of the level that refuses nobody,
    /// nothing.
    pub(super) fn unseen(level: Level) -> Self {
        if level == Level::ALL {
            return Self::default();
        }
        let ranks = (0..u32::from(Level::ALL.ranks())).filter_map(Rank::from_number);
        Self {
            weights: ranks.map(|rank| (rank, UNSEEN)).collect(),
        }
    }

    /// Takes in a window's requests by rank; older ones count half as much after each `half_life`.
    pub(super) fn remember(
        &mut self,
        requests: &[(Rank, f64)],
        length: Duration,
        half_life: Duration,
    ) {
        let half_lives = length.as_secs_f64() / half_life.as_secs_f64().max(1e-3);
        let kept = 0.5f64.powf(half_lives);
        self.weights.retain(|_, weight| {
            *weight *= kept;
            *weight > FORGOTTEN
        });
        for (rank, count) in requests {
            if *count > 0.0 {
                *self.weights.entry(*rank).or_default() += count;
            }
        }
    }

    /// The level that sheds this share of what `from` admits, and at least one rank for which there is demand.
    /// The rank that crosses the share is shed with it if more than `reach` of it is within.
    pub(super) fn lowered(&self, from: Level, share: f64, reach: f64) -> Level {
        let target = share * self.admitted(from);
        let mut shed = 0.0;
        let mut level = from;
        for (rank, weight) in self.weights.iter().rev() {
            if !level.admits(*rank) {
                continue;
            }
            if shed + weight * reach >= target && level != from {
                break;
            }
            shed += weight;
            level = Level::just_refusing(*rank);
        }
        level
    }

    /// The level that adds this share of what `from` admits, in the same way, and all where nobody would be
    /// refused any more.
    pub(super) fn raised(&self, from: Level, share: f64, reach: f64) -> Level {
        let target = share * self.admitted(from);
        let mut added = 0.0;
        let mut level = from;
        for (rank, weight) in &self.weights {
            if level.admits(*rank) {
                continue;
            }
            if added + weight * reach >= target && level != from {
                return level;
            }
            added += weight;
            level = Level::just_admitting(*rank);
        }
        Level::ALL
    }

    fn admitted(&self, level: Level) -> f64 {
        let admitted = self.weights.iter().filter(|(rank, _)| level.admits(**rank));
        admitted.map(|(_, weight)| weight).sum()
    }

    /// The weights of the ranks that `high` admits and `low` does not, most important first.
    #[cfg(test)]
    pub(super) fn between(&self, low: Level, high: Level) -> Vec<f64> {
        let moved = |rank: &Rank| high.admits(*rank) && !low.admits(*rank);
        let weights = self.weights.iter().filter(|(rank, _)| moved(rank));
        weights.map(|(_, weight)| *weight).collect()
    }
}
