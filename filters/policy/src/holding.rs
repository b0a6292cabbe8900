// SPDX-License-Identifier: Apache-2.0
//! Requests that wait at the caller for a host, for a bounded time.
//!
//! ```text
//!  decide: nobody admits it ────────────> at most `for_eligible` ─┐  each round, most important first:
//!  decide: a host without its key,        at most `for_cached`  ─┴> sent, or refused as without holding,
//!   while hosts that have it refuse it ─>                           or held further
//! ```
//!
//! The second is delay scheduling (Zaharia et al., *Delay Scheduling*, EuroSys 2010): a short wait for the
//! data is often less than fetching them. Beside [`Overload::Slots`] it is that in full: hosts refuse while they have no
//! idle core, a request waits for one that has its data for at most what it would cost to fetch them, and users of the
//! same class are served by turns ([`turns`]).

mod turns;
mod wait_queue;

pub use wait_queue::{Patience, Round, Ticket, WaitQueue};

use std::time::Duration;

use rand::Rng;

use crate::standing::Clock;
use crate::{
    Cluster, Decision, KeyHash, Level, Outcome, Overload, Policy, Rank, Reason, Request, TableError,
};

/// The longest that a request can be held: longer than nearly all callers wait.
pub const LONGEST_HOLD: Duration = Duration::from_secs(60);
/// The most requests that one VM can hold of a cluster: a tick decides anew for all that wait for a key, which
/// takes some microseconds each.
pub const MAX_HELD: usize = 10_000;
/// How long requests wait for credits: most callers wait no longer, and a proxy that knows when one gives up waits no
/// longer either.
const FOR_CREDITS: Duration = Duration::from_secs(10);
/// Holders of a key that are looked at, as selections do.
const HOLDERS: usize = 16;

/// For how long requests wait for a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Holding {
    /// For a host that admits the request, where none does. Zero: it is shed at once.
    pub for_eligible: Duration,
    /// For a host that has the key, where some have it, none of those admits the request and others do.
    /// Zero: it goes to one of the others at once.
    pub for_cached: Duration,
    /// Requests that one VM holds at a time; beyond them the least important is not held.
    pub max_held: usize,
}

impl Default for Holding {
    fn default() -> Self {
        Self {
            for_eligible: Duration::ZERO,
            for_cached: Duration::ZERO,
            // Envoy keeps a held request's stream and up to a buffer limit of its body: some 50 MB where
            // requests are small.
            max_held: 1000,
        }
    }
}

impl Holding {
    /// The default beside this overload policy. Credits are waited for: who has none and goes to a host without its data
    /// has that fetch what others need the cores for.
    pub fn beside(overload: Overload) -> Self {
        let hold = match overload {
            Overload::Breakwater => FOR_CREDITS,
            // A core is idle some time; for data they wait less, by what fetching those costs.
            Overload::Slots => LONGEST_HOLD,
            _ => Duration::ZERO,
        };
        Self {
            for_eligible: hold,
            for_cached: hold,
            ..Self::default()
        }
    }

    /// Whether any request is ever held.
    pub fn is_on(&self) -> bool {
        !self.for_eligible.is_zero() || !self.for_cached.is_zero()
    }

    pub(crate) fn check(&self) -> Result<(), TableError> {
        for (field, hold) in [
            ("for_eligible", self.for_eligible),
            ("for_cached", self.for_cached),
        ] {
            if hold > LONGEST_HOLD {
                return Err(TableError::BadHold { field, hold });
            }
        }
        if !(1..=MAX_HELD).contains(&self.max_held) {
            return Err(TableError::BadMaxHeld {
                count: self.max_held,
            });
        }
        Ok(())
    }
}

impl Cluster {
    /// As [`Cluster::decide`], but a request that may still wait is held where that is the policy.
    pub fn decide_or_hold(
        &self,
        request: &Request,
        patience: Patience,
        now: Duration,
        rng: &mut impl Rng,
    ) -> Decision {
        let decision = self.decide(request, now, rng);
        let Some((limit, reason)) = self.hold(request, &decision, now) else {
            return decision;
        };
        let until = patience.until(limit);
        if until <= now {
            return decision;
        }
        let outcome = Outcome::Hold { until };
        Decision { outcome, reason }
    }

    /// How long the request may be held instead of what was decided, and for what. Levels of a stale table hold
    /// nobody back.
    fn hold(
        &self,
        request: &Request,
        decision: &Decision,
        now: Duration,
    ) -> Option<(Duration, Reason)> {
        if self.is_stale(now) {
            return None;
        }
        let Policy {
            holding, overload, ..
        } = self.table()?.policy();
        match (decision.outcome, decision.reason, request.keys.last()) {
            (Outcome::Shed { .. }, ..) if !holding.for_eligible.is_zero() => {
                Some((holding.for_eligible, Reason::HeldForEligible))
            }
            (Outcome::Send(_), Reason::NotCached, Some(key)) if !holding.for_cached.is_zero() => {
                let limit = match overload {
                    Overload::Slots => holding.for_cached.min(self.cost(&request.keys).fetch),
                    _ => holding.for_cached,
                };
                let is_elsewhere = self.refusing_hosts_have(key, request.rank, now);
                is_elsewhere.then_some((limit, Reason::HeldForCached))
            }
            _ => None,
        }
    }

    /// Whether hosts have told that they have the key, and are up, and all refuse the rank. Who only may
    /// have it is no reason to wait, nor who fails.
    fn refusing_hosts_have(&self, key: KeyHash, rank: Rank, now: Duration) -> bool {
        let Some(table) = self.table() else {
            return false;
        };
        let holders = self.cache().holders(key, HOLDERS, 0);
        let known = holders.filter(|holder| !holder.assumed);
        let clock = Clock::new(now, table.policy().stale_after);
        let hosts = known.filter_map(|holder| table.index_of(holder.host));
        let hosts = hosts.filter(|host| !self.is_suspect(*host, clock));
        // A level is that of a host that is up.
        let mut levels = hosts.filter_map(|host| self.level(host));
        let mut refuses = |level: Level| !level.admits(rank);
        levels.next().is_some_and(&mut refuses) && levels.all(refuses)
    }

    /// What a request is expected to need of a core, where users of a class are served by turns.
    pub(crate) fn turn_cost(&self, request: &Request) -> Option<Duration> {
        let overload = self.table()?.policy().overload;
        (overload == Overload::Slots).then(|| self.cost(&request.keys).run)
    }

    /// How many hosts admit the request.
    pub(crate) fn admitting(&self, request: &Request) -> usize {
        self.admission.admitting(request.rank).len()
    }
}
