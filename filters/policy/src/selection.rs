// SPDX-License-Identifier: Apache-2.0
//! Which of the hosts that admit a request get it.

mod baseline;
mod dynamic;
mod estimate;
mod random;
mod rendezvous;

pub(crate) use rendezvous::Ring;

use std::time::Duration;

use rand::Rng;

use crate::cluster::Cluster;
use crate::standing::Clock;
use crate::{Ranked, Reason, Request, Table};

/// The selection policies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Selection {
    /// The production method of document 001 (section 9.2.1): shuffle by key, take the first.
    Baseline,
    /// Any host (section 9.2.2).
    Random,
    /// By key; a host that joins or leaves moves only its own share of the keys.
    Rendezvous,
    /// Where the key is cached, then where least is in progress (section 9.2.3).
    Dynamic,
    /// Where it is expected to be done first.
    Estimate,
}

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

impl Candidates<'_> {
    /// How many hosts are to be named.
    pub(crate) fn limit(&self) -> usize {
        self.table.policy().ranked_hosts.min(self.eligible.len())
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

impl Selection {
    pub(crate) fn select(
        self,
        candidates: &Candidates<'_>,
        rng: &mut impl Rng,
    ) -> (Ranked, Reason) {
        let Some(key) = candidates.request.key else {
            return match self {
                Self::Dynamic => dynamic::least_in_progress(candidates, rng),
                Self::Estimate => estimate::select(candidates, None, rng),
                _ => (random::select(candidates, rng), Reason::NoKey),
            };
        };
        match self {
            Self::Baseline => (baseline::select(candidates, key), Reason::Baseline),
            Self::Random => (random::select(candidates, rng), Reason::Random),
            Self::Rendezvous => (rendezvous::select(candidates, key), Reason::Rendezvous),
            Self::Dynamic => dynamic::select(candidates, key, rng),
            Self::Estimate => estimate::select(candidates, Some(key), rng),
        }
    }
}
