// SPDX-License-Identifier: Apache-2.0
//! The actor whose path to the answer yields most results for its time (document 003, RB; the
//! Highest Rate policy of Sharaf et al., ACM TODS 33(1), 2008: global selectivity ÷ global cost).
//!
//! Costs and selectivities are means over what has run so far. An actor that never ran counts as
//! free, so it is tried early.

use std::time::Duration;

use super::{Actors, Turns, first, ready};
use crate::Kind;

#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    joblets: f64,
    seconds: f64,
    served: f64,
}

impl Seen {
    fn cost(self) -> f64 {
        self.seconds / self.joblets.max(1.0)
    }

    fn selectivity(self) -> f64 {
        match self.joblets > 0.0 {
            true => self.served / self.joblets,
            false => 1.0,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct RateBased {
    seen: [Seen; Kind::COUNT],
}

impl RateBased {
    /// Results at the end of the path that begins with `kind`, per second on a core.
    fn rate(&self, kind: Kind) -> f64 {
        let (mut reach, mut cost) = (1.0, 0.0);
        for seen in &self.seen[kind.index()..] {
            cost += reach * seen.cost();
            reach *= seen.selectivity();
        }
        match cost > 0.0 {
            true => reach / cost,
            false => f64::INFINITY,
        }
    }
}

impl Turns for RateBased {
    fn next(&mut self, actors: &Actors) -> Option<Kind> {
        ready(actors).min_by(|a, b| {
            let by_rate = self.rate(*b).total_cmp(&self.rate(*a));
            by_rate.then_with(|| first(actors, *a).cmp(&first(actors, *b)))
        })
    }

    fn ran(&mut self, kind: Kind, core_time: Duration, served: usize) {
        let seen = &mut self.seen[kind.index()];
        seen.joblets += 1.0;
        seen.seconds += core_time.as_secs_f64();
        seen.served += served as f64;
    }
}
