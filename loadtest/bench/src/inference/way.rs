// SPDX-License-Identifier: Apache-2.0
//! The ways of choosing a host that are compared.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    LeastRequest,
    /// By Weir's key.
    RingHash,
    /// With its prefix scorer.
    Epp,
    Weir,
}

impl Way {
    pub(super) const ALL: [Self; 4] = [Self::LeastRequest, Self::RingHash, Self::Epp, Self::Weir];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::LeastRequest => "Envoy least_request",
            Self::RingHash => "Envoy ring_hash",
            Self::Epp => "EPP 1.3.0",
            Self::Weir => "Weir",
        }
    }

    pub(super) fn node(self) -> &'static str {
        match self {
            Self::LeastRequest => "least-request",
            Self::RingHash => "ring-hash",
            Self::Epp => "epp",
            Self::Weir => "weir",
        }
    }
}
