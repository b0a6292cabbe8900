// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use crate::every;
use crate::{Keys, Rank, Ranked};

/// What is asked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What the host should have in its cache; none where the caller does not say.
    pub keys: Keys,
    /// How important it is.
    pub rank: Rank,
}

/// What to do with the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Send it to the first of these hosts that takes it (indexes into the table).
    Send(Ranked),
    /// Answer that the caller should come back after this time, already jittered.
    Shed {
        /// Half to one and a half times the policy's `retry_after`.
        retry_after: Duration,
    },
    /// Decide anew, and at that time at the latest; only of [`Cluster::decide_or_hold`].
    ///
    /// [`Cluster::decide_or_hold`]: crate::Cluster::decide_or_hold
    Hold {
        /// On the clock of the decisions.
        until: Duration,
    },
    /// Leave the choice to the proxy: what it can do about it is more than to refuse.
    Fallback,
}

/// A decision and why it was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision {
    /// What to do.
    pub outcome: Outcome,
    /// Why.
    pub reason: Reason,
}

/// Why a decision was taken: about its first host where it names hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reason {
    /// The host said that it has the key; of several, that it has more of them, from the first on, than
    /// others.
    KnownCached,
    /// The key was sent there a moment ago; of several, one at least of those that it has.
    AssumedCached,
    /// Nobody who admits the request has the key; of several, more than half from the first on.
    NotCached,
    /// The request has no key to choose by.
    NoKey,
    /// The key's place in the shuffled list.
    Baseline,
    /// Drawn.
    Random,
    /// The key's place by consistent hashing.
    Rendezvous,
    /// The least delay among the hosts that are not hot.
    Cold,
    /// All hosts that admit the request are hot.
    Hot,
    /// The plan puts the key there.
    Planned,
    /// Every host that is up refuses requests of this rank.
    Overloaded,
    /// The same, but that may change in time.
    HeldForEligible,
    /// Hosts that have the key refuse requests of this rank, but that may change in time.
    HeldForCached,
    /// So few hosts are up, and neither failing nor refusing, that those which drain are chosen as well.
    Panic,
    /// No host of the cluster is up or drains.
    NoHost,
    /// No table has come yet.
    NoTable,
    /// The table is old and names no host that is up.
    StaleTable,
}

impl Reason {
    /// Every reason.
    pub const ALL: [Self; 17] = every![
        KnownCached,
        AssumedCached,
        NotCached,
        NoKey,
        Baseline,
        Random,
        Rendezvous,
        Cold,
        Hot,
        Planned,
        Overloaded,
        HeldForEligible,
        HeldForCached,
        Panic,
        NoHost,
        NoTable,
        StaleTable,
    ];

    /// Its name in metrics, headers and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::KnownCached => "known_cached",
            Self::AssumedCached => "assumed_cached",
            Self::NotCached => "not_cached",
            Self::NoKey => "no_key",
            Self::Baseline => "baseline",
            Self::Random => "random",
            Self::Rendezvous => "rendezvous",
            Self::Cold => "cold",
            Self::Hot => "hot",
            Self::Planned => "planned",
            Self::Overloaded => "overloaded",
            Self::HeldForEligible => "held_for_eligible",
            Self::HeldForCached => "held_for_cached",
            Self::Panic => "panic",
            Self::NoHost => "no_host",
            Self::NoTable => "no_table",
            Self::StaleTable => "stale_table",
        }
    }
}
