// SPDX-License-Identifier: Apache-2.0
//! Which of the hosts that admit a request get it.

mod baseline;
mod caching_plan;
mod dynamic;
mod estimate;
pub mod hot_cold;
mod random;
mod rendezvous;

pub(crate) use rendezvous::Ring;

use std::time::Duration;

use rand::Rng;

use crate::account::Account;
use crate::cluster::Cluster;
use crate::every;
use crate::prefix::{Prefix, Prefixes};
use crate::standing::Clock;
use crate::{KeyHash, Ranked, Reason, Request, Table, Terms};

/// The selection policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The production method of document 001 (section 9.2.1): shuffle by key (of several the second), take
    /// the first.
    Baseline,
    /// Any host (section 9.2.2).
    Random,
    /// By key (of several the second); a host that joins or leaves moves only its own share of the keys.
    Rendezvous,
    /// Where the key is cached, of several the most from the first on (if that is more than half of them), then
    /// where least is in progress (section 9.2.3).
    Dynamic,
    /// Where it is expected to be done first.
    Estimate,
    /// Prequal's rule: of hosts that are not hot the one with the least delay.
    HotCold {
        /// A host is hot with more jobs in progress than this quantile of all hosts', in thousandths.
        permille: u16,
    },
    /// Where a plan made beforehand puts the key, or any host.
    CachingPlan,
}

/// Hosts that are looked at for one that is not suspect. Half of them at most fail at a time, so that of a
/// thousand million decisions one finds none.
const UNSUSPECTED_AMONG: usize = 32;

/// What a selection policy is given.
pub(crate) struct Candidates<'a> {
    pub(crate) cluster: &'a Cluster,
    pub(crate) table: &'a Table,
    /// Hosts that may get the request, as indexes into the table, in an order that depends on levels
    /// alone; never empty.
    pub(crate) eligible: &'a [u32],
    pub(crate) request: &'a Request,
    pub(crate) now: Duration,
    /// The same, for comparing hosts.
    pub(crate) clock: Clock,
}

impl<'a> Candidates<'a> {
    pub(crate) fn new(
        cluster: &'a Cluster,
        table: &'a Table,
        (eligible, request): (&'a [u32], &'a Request),
        now: Duration,
    ) -> Self {
        let clock = Clock::new(now, table.policy().stale_after);
        Self {
            cluster,
            table,
            eligible,
            request,
            now,
            clock,
        }
    }

    /// How many hosts are to be named.
    pub(crate) fn limit(&self) -> usize {
        self.table.policy().ranked_hosts.min(self.eligible.len())
    }

    /// How long the request may wait at each host named but the last, by `estimate`.
    pub(crate) fn may_wait<'b>(
        &'b self,
        ranked: &'b Ranked,
    ) -> impl Iterator<Item = Duration> + 'b {
        estimate::may_wait(self, ranked)
    }

    /// What `estimate` compares where `rng` is as it was when it chose.
    pub(crate) fn compared(&self, rng: &mut impl Rng) -> Account {
        estimate::compared(self, rng)
    }

    /// What `estimate` judges the host with this table index by.
    pub(crate) fn judged(&self, host: u32) -> Option<Terms> {
        estimate::judged(self, host)
    }

    /// Which hosts hold how many of the request's keys, from the first on.
    pub(crate) fn prefixes(&self, random: u32) -> Prefixes {
        let keys = self.request.keys.as_slice();
        Prefixes::new(self.cluster, self.table, keys, self.now, random)
    }

    /// How many of them the host with this table index holds.
    pub(crate) fn prefix(&self, host: u32) -> Option<Prefix> {
        let keys = self.request.keys.as_slice();
        Prefix::of((self.cluster, self.table), keys, host, self.now)
    }

    /// Whether others come before the host with this table index, for all or for the request's key; for the most
    /// important requests a little sooner.
    pub(crate) fn is_suspect(&self, host: u32) -> bool {
        let cluster = self.cluster;
        cluster.is_suspect(host, self.clock)
            || self.request.rank.class() == 0 && cluster.is_doubted(host, self.now)
            || cluster.turns_away(host, self.request, self.now)
    }

    /// An eligible host that is not suspect, if one is soon found, where all that are named are: the same for
    /// the same ones, so that a key keeps its host meanwhile.
    pub(crate) fn unsuspected(&self, named: Ranked) -> Option<u32> {
        let hosts = self.cluster.admission.up_in_table();
        let after = named
            .first()
            .map_or(0, |first| hosts.partition_point(|host| *host <= first));
        let (before, after) = hosts.split_at_checked(after)?;
        let others = after.iter().chain(before).take(UNSUSPECTED_AMONG).copied();
        let mut others = others.filter(|host| self.is_eligible(*host));
        others.find(|host| !self.is_suspect(*host))
    }

    /// Whether the host with this table index is one of the eligible.
    pub(crate) fn is_eligible(&self, host: u32) -> bool {
        let admission = &self.cluster.admission;
        // Every host that is up, whatever its level: the table is stale, or nobody refuses the request.
        let any_up = self.eligible.len() == admission.up().len();
        admission
            .level(host)
            .is_some_and(|level| any_up || level.admits(self.request.rank))
    }
}

/// The key that policies which hash go by: of several the second. The first is often what every request
/// begins with (a system prompt), and would bring all to one host; the last is often of this request alone.
fn telling(keys: &[KeyHash]) -> Option<KeyHash> {
    keys.get(1).or(keys.first()).copied()
}

impl Selection {
    /// Every policy, with the defaults of its parameters.
    pub const ALL: [Self; 7] = every![
        Baseline,
        Random,
        Rendezvous,
        Dynamic,
        Estimate,
        HotCold {
            permille: hot_cold::QUANTILE_PERMILLE
        },
        CachingPlan,
    ];

    /// Its name in configurations.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Baseline => "baseline",
            Self::Random => "random",
            Self::Rendezvous => "rendezvous",
            Self::Dynamic => "dynamic",
            Self::Estimate => "estimate",
            Self::HotCold { .. } => "hot_cold",
            Self::CachingPlan => "caching_plan",
        }
    }

    pub(crate) fn select(
        self,
        candidates: &Candidates<'_>,
        rng: &mut impl Rng,
    ) -> (Ranked, Reason) {
        let keys = candidates.request.keys.as_slice();
        let Some(key) = telling(keys) else {
            return match self {
                Self::Dynamic => dynamic::least_in_progress(candidates, rng),
                Self::Estimate => estimate::select(candidates, rng),
                Self::HotCold { permille } => hot_cold::select(candidates, permille, rng),
                _ => (random::select(candidates, rng), Reason::NoKey),
            };
        };
        match self {
            Self::Baseline => (baseline::select(candidates, key), Reason::Baseline),
            Self::Random => (random::select(candidates, rng), Reason::Random),
            Self::Rendezvous => (rendezvous::select(candidates, key), Reason::Rendezvous),
            Self::Dynamic if keys.len() > 1 => dynamic::select_by_prefix(candidates, keys, rng),
            Self::Dynamic => dynamic::select(candidates, key, rng),
            Self::Estimate => estimate::select(candidates, rng),
            Self::HotCold { permille } => hot_cold::select(candidates, permille, rng),
            Self::CachingPlan => caching_plan::select(candidates, key, rng),
        }
    }
}
