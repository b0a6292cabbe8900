// SPDX-License-Identifier: Apache-2.0
//! How much is measured.

/// Sizes of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// In the index.
    pub documents: usize,
    /// How often all engines are started anew: two JVMs with the same program differ by what
    /// their compilers happened to do.
    pub starts: u32,
    /// Of each start.
    pub rounds: u32,
    /// Of each load to each engine, in a round: short ones, for what disturbs the machine changes.
    pub turns: usize,
    /// Queries at the beginning of a turn that are not measured: the caches of the cores belonged to another engine.
    pub lead: usize,
    /// Measured queries of a turn.
    pub measured: usize,
    /// Queries to each engine before the first round: its compilers are then done with the search.
    pub warm_up: usize,
}

impl Plan {
    /// What is published.
    pub const FULL: Self = Self {
        documents: 200_000,
        starts: 3,
        rounds: 8,
        turns: 8,
        lead: 5,
        measured: 25,
        warm_up: 2_000,
    };
    /// A taste, with rougher figures.
    pub const QUICK: Self = Self {
        documents: 50_000,
        starts: 1,
        rounds: 5,
        turns: 4,
        lead: 5,
        measured: 25,
        warm_up: 1_000,
    };
}
