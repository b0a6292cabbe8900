// SPDX-License-Identifier: Apache-2.0
//! Who chooses hosts, and how. A new combination is one line here.

/// A name for the tables, and flags of `weir-sim cell`.
#[derive(Debug)]
pub(super) struct Policy {
    pub(super) name: &'static str,
    pub(super) flags: &'static str,
    pub(super) role: Role,
}

impl Policy {
    /// Without load on answers it is another policy: hosts say it here also where they say it to nobody else.
    pub(super) fn weighs_answers(&self) -> bool {
        self.flags == "--placement weighted"
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// Sees what no caller can.
    Bound,
    /// On every workload, once, with one caller.
    Compared,
    /// Also with many callers, other staleness and hosts in trouble.
    Varied,
}

/// What the others are held against: the best of document 001.
pub(super) const REFERENCE: &str = "dynamic + breaker";
/// The distance to the best possible is the distance to this one.
pub(super) const CLAIRVOYANT: &str = "clairvoyant";

pub(super) const POLICIES: &[Policy] = &[
    bound(CLAIRVOYANT, "--placement clairvoyant"),
    bound("central queue", "--placement central-queue"),
    compared("envoy least_request", "--placement least-request"),
    compared("envoy ring_hash, maglev", "--placement hashing"),
    compared("envoy bounded hashing", "--placement bounded-hashing"),
    compared("envoy weighted by ORCA", "--placement weighted"),
    compared("envoy subset by key", "--placement subset"),
    compared("baseline", "--selection baseline"),
    compared(
        "baseline + breaker",
        "--selection baseline --overload breaker",
    ),
    compared("baseline + dagor", "--selection baseline --overload dagor"),
    compared("random", "--selection random"),
    compared("random + breaker", "--selection random --overload breaker"),
    compared("rendezvous", "--selection rendezvous"),
    compared(
        "rendezvous + breaker",
        "--selection rendezvous --overload breaker",
    ),
    compared(
        "rendezvous + dagor",
        "--selection rendezvous --overload dagor",
    ),
    compared("hot_cold", "--selection hot-cold"),
    compared("caching_plan", "--selection caching-plan"),
    compared("dynamic", "--selection dynamic"),
    varied(REFERENCE, "--selection dynamic --overload breaker"),
    compared(
        "dynamic + breaker + holding",
        "--selection dynamic --overload breaker --hold-eligible 5s",
    ),
    compared(
        "dynamic + breaker + hedging",
        "--selection dynamic --overload breaker --hedge-after 2s",
    ),
    compared(
        "dynamic + breaker + naive hedging",
        "--selection dynamic --overload breaker --hedge-after 2s --hedge-idle-percent 0",
    ),
    compared(
        "dynamic + dynamic_breaker",
        "--selection dynamic --overload dynamic-breaker",
    ),
    compared(
        "dynamic + dagor (paper)",
        "--selection dynamic --overload dagor --dagor-control paper",
    ),
    compared("dynamic + dagor", "--selection dynamic --overload dagor"),
    varied("estimate", "--selection estimate"),
    varied("estimate + bounces", "--selection estimate --give-back"),
    compared(
        "estimate + breaker",
        "--selection estimate --overload breaker",
    ),
    varied("estimate + dagor", "--selection estimate --overload dagor"),
    compared(
        "estimate + breakwater",
        "--selection estimate --overload breakwater --hold-eligible 10s --hold-cached 10s",
    ),
];

const fn bound(name: &'static str, flags: &'static str) -> Policy {
    let role = Role::Bound;
    Policy { name, flags, role }
}

const fn compared(name: &'static str, flags: &'static str) -> Policy {
    let role = Role::Compared;
    Policy { name, flags, role }
}

const fn varied(name: &'static str, flags: &'static str) -> Policy {
    let role = Role::Varied;
    Policy { name, flags, role }
}
