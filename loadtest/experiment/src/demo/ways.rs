// SPDX-License-Identifier: Apache-2.0
//! The ways of choosing a host that are compared, as data.

use crate::callers::bootstrap::Balancer;

/// One way: a name for the table and what to run.
pub struct Way {
    pub(super) name: &'static str,
    pub(super) kind: Kind,
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

pub(super) const WAYS: [Way; 6] = [
    Way {
        name: "envoy least_request",
        kind: Kind::Envoy(Balancer::LeastRequest),
    },
    Way {
        name: "envoy ring_hash",
        kind: Kind::Envoy(Balancer::RingHash),
    },
    weir("weir baseline+none", "baseline", "none"),
    weir("weir dynamic+breaker", "dynamic", "breaker"),
    weir("weir dynamic+dagor", "dynamic", "dagor"),
    weir("weir estimate+none", "estimate", "none"),
];

/// Those on which the simulator and the demonstration have to agree: both can run them, and they are
/// far apart.
pub(super) const AGREED: [Way; 4] = [
    weir("weir baseline+none", "baseline", "none"),
    weir("weir random+none", "random", "none"),
    weir("weir dynamic+breaker", "dynamic", "breaker"),
    weir("weir estimate+none", "estimate", "none"),
];

const fn weir(name: &'static str, selection: &'static str, overload: &'static str) -> Way {
    let kind = Kind::Weir {
        selection,
        overload,
    };
    Way { name, kind }
}

impl Way {
    /// weir-control's overload policy, where there is a weir-control.
    pub(super) fn overload(&self) -> Option<&'static str> {
        match self.kind {
            Kind::Envoy(_) => None,
            Kind::Weir { overload, .. } => Some(overload),
        }
    }

    /// The name as a folder.
    pub(super) fn folder(&self) -> String {
        self.name.replace([' ', '+'], "-")
    }
}
