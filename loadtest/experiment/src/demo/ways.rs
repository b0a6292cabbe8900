// SPDX-License-Identifier: Apache-2.0
//! The ways of choosing a host that are compared, as data.

use crate::callers::Sidecars;
use crate::callers::balancer::Balancer;

/// One way: a name for the table and what to run.
pub struct Way {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    pub(super) sidecars: Sidecars,
    pub(super) before_hosts: BeforeHosts,
    /// Whether `--quick` runs it, too.
    pub(super) quick: bool,
}

#[derive(Clone, Copy)]
pub(super) enum Kind {
    /// Envoy alone, with one of its own load-balancing policies.
    Envoy(Balancer),
    /// Envoy with the filter, told by weir-control.
    Weir {
        selection: &'static str,
        overload: &'static str,
    },
}

/// What stands before each host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BeforeHosts {
    Nothing,
    /// An Envoy as a mesh has it: one more hop, without Weir.
    Envoy,
    /// An Envoy with the filter in `role: host`, which gives requests back.
    Weir,
}

/// Of a way that says nothing else.
pub(super) const SIDECARS: Sidecars = Sidecars::single(2);

/// As in a mesh: 64 worker threads, which share what they know through weir-control alone but for those of one sidecar.
pub(super) const EIGHT: Sidecars = Sidecars {
    count: 8,
    workers: 8,
};

pub(super) const WAYS: [Way; 19] = [
    envoy("envoy least_request", Balancer::LeastRequest).quick(),
    envoy("envoy ring_hash", Balancer::RingHash).quick(),
    envoy("envoy bounded ring_hash", Balancer::BoundedRingHash).quick(),
    envoy("envoy maglev", Balancer::Maglev),
    envoy("envoy weighted by ORCA", Balancer::Weighted),
    envoy("envoy subset by key", Balancer::Subset),
    weir("weir baseline+none", "baseline", "none").quick(),
    weir("weir dynamic+breaker", "dynamic", "breaker").quick(),
    weir("weir dynamic+dagor", "dynamic", "dagor").quick(),
    // Its plan is learned: a host for each key, by what the key's requests cost.
    weir("weir caching_plan+none", "caching_plan", "none"),
    defaults(DEFAULTS).quick(),
    defaults("weir estimate+none hop").before_hosts(BeforeHosts::Envoy),
    defaults("weir estimate+none bounces").before_hosts(BeforeHosts::Weir),
    defaults("weir estimate+none 1x1").with(Sidecars::single(1)),
    envoy("envoy least_request 8x8", Balancer::LeastRequest).with(EIGHT),
    envoy("envoy bounded ring 8x8", Balancer::BoundedRingHash).with(EIGHT),
    defaults("weir estimate+none 8x8").with(EIGHT),
    defaults("weir estimate+none hop 8x8")
        .with(EIGHT)
        .before_hosts(BeforeHosts::Envoy),
    defaults("weir estimate+none bounces 8x8")
        .with(EIGHT)
        .before_hosts(BeforeHosts::Weir),
];

/// The name of the defaults, and the beginning of that of each way that differs in its Envoys alone.
pub(super) const DEFAULTS: &str = "weir estimate+none";

/// Those on which the simulator and the demonstration have to agree: both can run them, and they are
/// far apart.
pub(super) const AGREED: [Way; 5] = [
    envoy("envoy bounded ring_hash", Balancer::BoundedRingHash),
    weir("weir baseline+none", "baseline", "none"),
    weir("weir random+none", "random", "none"),
    weir("weir dynamic+breaker", "dynamic", "breaker"),
    defaults(DEFAULTS),
];

const fn envoy(name: &'static str, balancer: Balancer) -> Way {
    way(name, Kind::Envoy(balancer))
}

/// Weir as it comes.
const fn defaults(name: &'static str) -> Way {
    weir(name, "estimate", "none")
}

const fn weir(name: &'static str, selection: &'static str, overload: &'static str) -> Way {
    let kind = Kind::Weir {
        selection,
        overload,
    };
    way(name, kind)
}

const fn way(name: &'static str, kind: Kind) -> Way {
    Way {
        name,
        kind,
        sidecars: SIDECARS,
        before_hosts: BeforeHosts::Nothing,
        quick: false,
    }
}

impl Way {
    const fn quick(mut self) -> Self {
        self.quick = true;
        self
    }

    const fn with(mut self, sidecars: Sidecars) -> Self {
        self.sidecars = sidecars;
        self
    }

    const fn before_hosts(mut self, before_hosts: BeforeHosts) -> Self {
        self.before_hosts = before_hosts;
        self
    }

    /// weir-control's overload policy, where there is a weir-control.
    pub(super) fn overload(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Envoy(_) => None,
            Kind::Weir { overload, .. } => Some(overload),
        }
    }

    /// What hosts are told of it, beside what all hosts are.
    pub(super) fn host_flags(&self) -> &'static [&'static str] {
        match self.kind {
            Kind::Envoy(balancer) => balancer.host_flags(),
            Kind::Weir { .. } => &[],
        }
    }

    /// The name as a folder.
    pub(super) fn folder(&self) -> String {
        self.name.replace([' ', '+'], "-")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::demo::table;

    #[test]
    fn ways_have_folders_of_their_own_and_names_that_fit_the_table() {
        let folders: BTreeSet<String> = WAYS.iter().map(Way::folder).collect();
        assert_eq!(folders.len(), WAYS.len());
        assert!(WAYS.iter().all(|way| way.name.len() <= table::NAME));
    }

    #[test]
    fn the_quick_demo_stays_quick() {
        assert_eq!(WAYS.iter().filter(|way| way.quick).count(), 7);
    }
}
