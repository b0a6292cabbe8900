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

use super::{Queue, SOURCE, Turns, first, ready};

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
    /// Priorities of the actors but for the source, of a host those of SharedOperators, Operators and OutputFeed; a
    /// smaller number is more important. Those that are not named have the last one's.
    pub priorities: Vec<u32>,
    /// The source, of a host FeedSource, runs after so many joblets of the others.
    pub source_interval: u32,
    /// From priorities to allowances.
    pub formula: Formula,
}

impl Default for QuantumSettings {
    fn default() -> Self {
        Self {
            basic: Duration::from_micros(500),
            priorities: vec![10, 10, 5],
            source_interval: 5,
            formula: Formula::default(),
        }
    }
}

#[derive(Debug)]
pub(super) struct Quantum {
    settings: QuantumSettings,
    /// Nanoseconds left of each internal actor's allowance; below 0 after an overrun.
    left: Vec<i128>,
    since_source: u32,
}

impl Quantum {
    pub(super) fn new(settings: QuantumSettings, actors: usize) -> Self {
        let mut new = Self {
            settings,
            left: vec![0; actors],
            since_source: 0,
        };
        new.requantify(1);
        new
    }

    fn priority(&self, actor: usize) -> u32 {
        let priorities = &self.settings.priorities;
        let named = actor
            .checked_sub(1)
            .and_then(|at| priorities.get(at).or(priorities.last()));
        named.copied().unwrap_or(0)
    }

    fn allowance(&self, actor: usize) -> i128 {
        let quantum = self.settings.formula;
        let quantum = quantum.quantum(self.priority(actor), self.settings.basic);
        i128::try_from(quantum.as_nanos()).unwrap_or(i128::MAX)
    }

    /// Every actor gets its allowance so many times; what it had is kept, debts too.
    fn requantify(&mut self, times: i128) {
        for actor in 0..self.left.len() {
            let more = self.allowance(actor).saturating_mul(times);
            self.left[actor] = self.left[actor].saturating_add(more);
        }
    }

    /// Re-quantifications until one of these has time left.
    fn rounds(&self, waiting: &[usize]) -> i128 {
        let rounds = |actor: &usize| {
            let debt = -self.left[*actor];
            debt.max(0) / self.allowance(*actor) + 1
        };
        waiting.iter().map(rounds).min().unwrap_or(0)
    }
}

impl Turns for Quantum {
    fn next(&mut self, actors: &[Queue]) -> Option<usize> {
        let sources = !actors[SOURCE].is_empty();
        let internal: Vec<usize> = ready(actors).filter(|actor| *actor != SOURCE).collect();
        let source_is_due = self.since_source >= self.settings.source_interval;
        if sources && (internal.is_empty() || source_is_due) {
            self.since_source = 0;
            return Some(SOURCE);
        }
        if internal.iter().all(|actor| self.left[*actor] <= 0) {
            self.requantify(self.rounds(&internal));
        }
        let active = internal.iter().filter(|actor| self.left[**actor] > 0);
        // Equal priorities are served first in, first out.
        let next = active.min_by_key(|a| (self.priority(**a), first(actors, **a).map(|r| r.job)));
        if next.is_some() {
            self.since_source = self.since_source.saturating_add(1);
        }
        next.copied()
    }

    fn ran(&mut self, actor: usize, core_time: Duration, _sent: &[usize]) {
        let spent = i128::try_from(core_time.as_nanos()).unwrap_or(i128::MAX);
        self.left[actor] = self.left[actor].saturating_sub(spent);
    }
}
