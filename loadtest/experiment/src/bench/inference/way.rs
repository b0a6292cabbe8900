// SPDX-License-Identifier: Apache-2.0
//! The ways of choosing a host that are compared.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    LeastRequest,
    /// By what hosts say in their answers of their load (ORCA).
    Weighted,
    /// By the key in Weir's header.
    RingHash,
    /// The same, where no host gets more than so much over its share.
    BoundedRingHash,
    /// By the same key.
    Maglev,
    /// With its prefix scorer.
    Epp,
    /// The same, where sidecars go on without it if they cannot ask it.
    EppOpen,
    /// The same behind eight sidecars.
    EppOfEight,
    /// With its defaults.
    Weir,
    /// With its defaults, and keys from bodies; hosts do not say what they have.
    Prompt,
    /// The same, where they publish it as vLLM does.
    Events,
    /// The same in eight sidecars.
    EventsOfEight,
    /// [`Self::Events`] with the overload policy `dagor`.
    Levels,
    /// The same with levels that head for a shorter wait.
    ShortLevels,
    /// With the selection `dynamic`, and a breaker: `dynamic` leaves a host for nothing else.
    Dynamic,
}

impl Way {
    pub(super) const ALL: [Self; 12] = [
        Self::LeastRequest,
        Self::Weighted,
        Self::RingHash,
        Self::BoundedRingHash,
        Self::Maglev,
        Self::Epp,
        Self::EppOfEight,
        Self::Weir,
        Self::Prompt,
        Self::Events,
        Self::EventsOfEight,
        Self::Dynamic,
    ];

    /// Those that are compared at several loads.
    pub(super) const LOADS: [Self; 4] = [Self::LeastRequest, Self::Epp, Self::Prompt, Self::Events];

    /// One caller and eight.
    pub(super) const CALLERS: [Self; 4] = [
        Self::Epp,
        Self::EppOfEight,
        Self::Events,
        Self::EventsOfEight,
    ];

    /// Those that ask somebody who may be gone.
    pub(super) const ASKING: [Self; 4] = [Self::Epp, Self::EppOpen, Self::Prompt, Self::Events];

    /// Those that are sent more than hosts can do.
    pub(super) const OVERLOADED: [Self; 5] = [
        Self::LeastRequest,
        Self::Epp,
        Self::Events,
        Self::Levels,
        Self::ShortLevels,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::LeastRequest => "Envoy least_request",
            Self::Weighted => "Envoy client_side_weighted_round_robin",
            Self::RingHash => "Envoy ring_hash",
            Self::BoundedRingHash => "Envoy ring_hash, bounded",
            Self::Maglev => "Envoy maglev",
            Self::Epp => "EPP 1.3.0",
            Self::EppOpen => "EPP 1.3.0, failing open",
            Self::EppOfEight => "EPP 1.3.0, eight callers",
            Self::Weir => "Weir, a key in a header",
            Self::Prompt => "Weir, keys from bodies",
            Self::Events => "Weir, keys from bodies, told",
            Self::EventsOfEight => "Weir, keys from bodies, told, eight callers",
            Self::Levels => "Weir, keys from bodies, told, dagor",
            Self::ShortLevels => "Weir, keys from bodies, told, dagor, target 500 ms",
            Self::Dynamic => "Weir, dynamic",
        }
    }

    pub(super) fn node(self) -> &'static str {
        match self {
            Self::LeastRequest => "least-request",
            Self::Weighted => "weighted",
            Self::RingHash => "ring-hash",
            Self::BoundedRingHash => "bounded-ring-hash",
            Self::Maglev => "maglev",
            Self::Epp => "epp",
            Self::EppOpen => "epp-open",
            Self::EppOfEight => "epp-of-eight",
            Self::Weir => "weir",
            Self::Prompt => "weir-prompt",
            Self::Events => "weir-events",
            Self::EventsOfEight => "weir-events-of-eight",
            Self::Levels => "weir-levels",
            Self::ShortLevels => "weir-short-levels",
            Self::Dynamic => "weir-dynamic",
        }
    }

    /// Whether the filter decides, and counts why.
    pub(super) fn is_weir(self) -> bool {
        self.reads_prompts() || matches!(self, Self::Weir | Self::Dynamic)
    }

    /// Whether the filter reads its keys from bodies.
    pub(super) fn reads_prompts(self) -> bool {
        self.is_told() || self == Self::Prompt
    }

    /// Whether hosts publish what they have.
    pub(super) fn is_told(self) -> bool {
        matches!(self, Self::Events | Self::EventsOfEight) || self.wait().is_some()
    }

    /// The wait that levels head for, in milliseconds of the trace; none where there are none.
    pub(super) fn wait(self) -> Option<u32> {
        match self {
            // weir-control's default.
            Self::Levels => Some(2000),
            Self::ShortLevels => Some(500),
            _ => None,
        }
    }

    /// Sidecars that take turns.
    pub(super) fn callers(self) -> usize {
        match self {
            Self::EppOfEight | Self::EventsOfEight => 8,
            _ => 1,
        }
    }
}
