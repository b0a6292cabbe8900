// SPDX-License-Identifier: Apache-2.0
//! Actors by priority while their allowance of core time lasts, sources at regular intervals
//! (document 003, QBS).
//!
//! Document 003 names the basic quantum *b* of "Equation 5.1" without printing it. The default
//! [`Formula`] is that equation as P. Neophytou's thesis on STAFiLOS has it (section 5.4.1, after
//! the Linux scheduler): `q = (40 − p)·4b` for a priority `p` below 20, else `(40 − p)·b`. Which
//! actor had which of the priorities 5 and 10 is not printed either; by default the output has 5,
//! as its response time is what document 003 measures. Both are assumptions and can be set.

use std::time::Duration;

use super::{Actors, Turns, first, ready};
use crate::Kind;

/// How a priority becomes an allowance: `(ceiling − p) · b`, times `boost` where `p < boundary`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Formula {
    /// One above the least important priority.
    pub ceiling: u32,
    /// Priorities below it are boosted.
    pub boundary: u32,
    /// By this factor.
    pub boost: u32,
}

impl Default for Formula {
    fn default() -> Self {
        Self {
            ceiling: 40,
            boundary: 20,
            boost: 4,
        }
    }
}

impl Formula {
    /// The allowance of one re-quantification; never zero, or an actor would starve.
    #[must_use]
    pub fn quantum(&self, priority: u32, basic: Duration) -> Duration {
        let boost = if priority < self.boundary {
            self.boost
        } else {
            1
        };
        let quanta = self.ceiling.saturating_sub(priority).saturating_mul(boost);
        basic.saturating_mul(quanta).max(Duration::from_nanos(1))
    }
}

/// What document 003's table 2 sets for QBS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QuantumSettings {
    /// The basic quantum *b*.
    pub basic: Duration,
    /// Priorities of SharedOperators, Operators and OutputFeed; a smaller number is more important.
    pub priorities: [u32; Kind::COUNT - 1],
    /// A FeedSource runs after so many joblets of the other kinds.
    pub source_interval: u32,
    /// From priorities to allowances.
    pub formula: Formula,
}

impl Default for QuantumSettings {
    fn default() -> Self {
        Self {
            basic: Duration::from_micros(500),
            priorities: [10, 10, 5],
            source_interval: 5,
            formula: Formula::default(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Quantum {
    settings: QuantumSettings,
    /// Nanoseconds left of each internal actor's allowance; below 0 after an overrun.
    left: [i128; Kind::COUNT],
    since_source: u32,
}

impl Quantum {
    pub(super) fn new(settings: QuantumSettings) -> Self {
        let mut new = Self {
            settings,
            left: [0; Kind::COUNT],
            since_source: 0,
        };
        new.requantify(1);
        new
    }

    fn priority(&self, kind: Kind) -> u32 {
        match kind {
            Kind::FeedSource => 0,
            other => self.settings.priorities[other.index() - 1],
        }
    }

    fn allowance(&self, kind: Kind) -> i128 {
        let quantum = self.settings.formula;
        let quantum = quantum.quantum(self.priority(kind), self.settings.basic);
        i128::try_from(quantum.as_nanos()).unwrap_or(i128::MAX)
    }

    /// Every actor gets its allowance so many times; what it had is kept, debts too.
    fn requantify(&mut self, times: i128) {
        for kind in Kind::ALL {
            let more = self.allowance(kind).saturating_mul(times);
            let left = &mut self.left[kind.index()];
            *left = left.saturating_add(more);
        }
    }

    /// Re-quantifications until one of these has time left.
    fn rounds(&self, waiting: &[Kind]) -> i128 {
        let rounds = |kind: &Kind| {
            let debt = -self.left[kind.index()];
            debt.max(0) / self.allowance(*kind) + 1
        };
        waiting.iter().map(rounds).min().unwrap_or(0)
    }
}

impl Turns for Quantum {
    fn next(&mut self, actors: &Actors) -> Option<Kind> {
        let sources = !actors[Kind::FeedSource.index()].is_empty();
        let internal: Vec<Kind> = ready(actors).filter(|k| *k != Kind::FeedSource).collect();
        let source_is_due = self.since_source >= self.settings.source_interval;
        if sources && (internal.is_empty() || source_is_due) {
            self.since_source = 0;
            return Some(Kind::FeedSource);
        }
        if internal.iter().all(|kind| self.left[kind.index()] <= 0) {
            self.requantify(self.rounds(&internal));
        }
        let active = internal.iter().filter(|k| self.left[k.index()] > 0);
        // Equal priorities are served first in, first out.
        let next = active.min_by_key(|k| (self.priority(**k), first(actors, **k).map(|r| r.job)));
        if next.is_some() {
            self.since_source = self.since_source.saturating_add(1);
        }
        next.copied()
    }

    fn ran(&mut self, kind: Kind, core_time: Duration, _served: usize) {
        let spent = i128::try_from(core_time.as_nanos()).unwrap_or(i128::MAX);
        self.left[kind.index()] = self.left[kind.index()].saturating_sub(spent);
    }
}
