// SPDX-License-Identifier: Apache-2.0
//! How `estimate` compares hosts, and the account of one comparison: enough to make it again.
//!
//! ```text
//!  Terms of a host ── score ──> Places (the best few) ── ranked ──> hosts, reason
//!        └── of some requests, afterwards ──> Account ── decide ──> the same again
//! ```

use std::time::Duration;

use rand::Rng;

use crate::key::split_mix;
pub(crate) use crate::places::{Places, Score};
use crate::selection::Candidates;
use crate::{Cluster, Decision, Outcome, Ranked, Reason, Request, Selection};

// Of a score: hosts to be avoided last, then the finish, then where the key is, then how full the host is, then chance,
// and the host (1, 31, 2, 4, 10 and 16 bits): sixteen steps of fullness, so that callers who know the same do not all
// take the same host.
const AVOID: Score = 1 << 63;
const FINISH_AT: u32 = 32;
const MAX_FINISH: Score = (1 << 31) - 1;
/// The unit of the finish: 2^31 of them are six days.
const UNIT: f64 = 256_000.0;
const STATUS_AT: u32 = 30;
const FULLNESS_AT: u32 = 26;
const MAX_FULLNESS: Score = (1 << 4) - 1;
const CHANCE_AT: u32 = 16;

/// What of a request's data is at a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Has {
    /// All, as the host said.
    Known,
    /// All, as it was sent there a moment ago.
    Assumed,
    /// So many of the keys are not there.
    Lacks(u32),
}

impl Has {
    /// In a score.
    fn number(self) -> Score {
        match self {
            Self::Known => 0,
            Self::Assumed => 1,
            Self::Lacks(_) => 2,
        }
    }
}

/// What counts of one host for one request. Times are nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Terms {
    /// Its index in the table.
    pub host: u32,
    /// What of the data is there.
    pub has: Has,
    /// Until the request would have a core; 0 while one is idle.
    pub wait: f64,
    /// To fetch what is not there, with what that delays others and has them fetch again; of a second copy, a part of that.
    pub fetch: f64,
    /// To run.
    pub run: f64,
    /// To cross to the host's zone, where the policy says what that takes.
    pub crossing: f64,
    /// What fetch and run are divided by.
    pub speed: f64,
    /// Cores that are held, of those that there are.
    pub fullness: f64,
    /// Others come first: it fails, or goes away before the request would be done.
    pub avoided: bool,
}

impl Terms {
    /// When the request would be done, in nanoseconds from now.
    pub fn finish(&self) -> f64 {
        self.wait + self.crossing + (self.fetch + self.run) / self.speed
    }

    #[inline]
    pub(crate) fn score(&self, salt: u64) -> Score {
        self.merit() | among_equals(self.host, fullness(self.fullness), salt)
    }

    /// The score but for what tells equals apart.
    #[inline]
    pub(crate) fn merit(&self) -> Score {
        let avoided = if self.avoided { AVOID } else { 0 };
        let finish = ((self.finish() / UNIT) as Score).min(MAX_FINISH) << FINISH_AT;
        avoided | finish | self.has.number() << STATUS_AT
    }
}

/// The part of a score that tells equals apart: how full the host is, chance, and the host.
#[inline]
pub(crate) fn among_equals(host: u32, fullness: Score, salt: u64) -> Score {
    let chance = (split_mix(&mut (salt ^ u64::from(host))) & 0x3ff) << CHANCE_AT;
    fullness | chance | Score::from(host)
}

/// How full a host is, in a score.
pub(crate) fn fullness(fullness: f64) -> Score {
    ((fullness * MAX_FULLNESS as f64) as Score).min(MAX_FULLNESS) << FULLNESS_AT
}

impl Places {
    /// The hosts for a request with so many keys.
    pub(crate) fn ranked(&self, keys: u32) -> (Ranked, Reason) {
        let reason = match (keys, self.first() >> STATUS_AT & 3) {
            (0, _) => Reason::NoKey,
            (_, 0) => Reason::KnownCached,
            (_, 1) => Reason::AssumedCached,
            _ => Reason::NotCached,
        };
        (self.hosts(), reason)
    }
}

/// The account of a decision by `estimate`: what was compared, in its order, and what came after.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Of the draw among equals.
    pub salt: u64,
    /// Keys of the request.
    pub keys: u32,
    /// Hosts that were to be named.
    pub limit: usize,
    /// Hosts that were looked at, in that order.
    pub terms: Vec<Terms>,
    /// Of the hosts named those that others come before.
    pub suspects: Vec<u32>,
    /// A host that is no suspect, where all that were named are.
    pub instead: Option<u32>,
    /// So few hosts were left that those which drain were chosen as well.
    pub panics: bool,
}

impl Account {
    /// The decision, made again by the same code. None where it was not made by comparison: no host was looked at.
    pub fn decide(&self) -> Option<(Ranked, Reason)> {
        let (ranked, reason) = self.named()?;
        let ranked = put_suspects_last(
            ranked,
            |host| self.suspects.contains(&host),
            |_| self.instead,
        );
        Some((ranked, if self.panics { Reason::Panic } else { reason }))
    }

    /// The hosts that are best by comparison. None where none was looked at.
    pub(crate) fn named(&self) -> Option<(Ranked, Reason)> {
        if self.terms.is_empty() {
            return None;
        }
        let mut places = Places::new(self.limit);
        for terms in &self.terms {
            places.consider(terms.score(self.salt));
        }
        Some(places.ranked(self.keys))
    }
}

impl Cluster {
    /// The account of what was just decided for a request; `rng` is as it was before that. Made afterwards, so that
    /// decisions without one do not pay for it.
    #[cold]
    pub fn account(
        &self,
        request: &Request,
        decision: &Decision,
        now: Duration,
        rng: &mut impl Rng,
    ) -> Account {
        let Some(table) = self.table() else {
            return Account::default();
        };
        let eligible = self.eligible(request, self.is_stale(now));
        let is_compared = table.policy().selection == Selection::Estimate && !eligible.is_empty();
        let candidates = Candidates::new(self, table, (eligible, request), now);
        let mut account = match is_compared {
            true => candidates.compared(rng),
            false => Account::default(),
        };
        let named = match (account.named(), decision.outcome) {
            (Some((ranked, _)), _) | (None, Outcome::Send(ranked)) => ranked,
            _ => return Account::default(),
        };
        let suspects = named.as_slice().iter().copied();
        let suspects = suspects.filter(|host| candidates.is_suspect(*host));
        account.suspects = suspects.collect();
        let is_suspect = |host| account.suspects.contains(&host);
        let ranked = put_suspects_last(named, is_suspect, |ranked| {
            account.instead = candidates.unsuspected(ranked);
            account.instead
        });
        account.panics = self.panics;
        match decision.outcome {
            Outcome::Send(made) if made == ranked || !is_compared => account,
            Outcome::Hold { .. } => account,
            // Who waits for a host came first, or nobody was there to be compared.
            Outcome::Send(_) | Outcome::Shed { .. } | Outcome::Fallback => Account::default(),
        }
    }
}

/// Hosts that others come before go last; where all are such, `instead` may name one that is not.
pub(crate) fn put_suspects_last(
    mut ranked: Ranked,
    is_suspect: impl Fn(u32) -> bool,
    instead: impl FnOnce(Ranked) -> Option<u32>,
) -> Ranked {
    if ranked.as_slice().iter().any(|host| is_suspect(*host)) {
        ranked = ranked.demote(&is_suspect);
        if ranked.first().is_some_and(is_suspect)
            && let Some(other) = instead(ranked)
        {
            ranked.put_first(other);
        }
    }
    ranked
}
