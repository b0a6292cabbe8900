// SPDX-License-Identifier: Apache-2.0
//! The ways to run the engine, after document 000, "Definitions: Types".

use serde::Serialize;

/// The hot function of document 002 (section 3.2.1): once for each shard of a query.
pub const HOT: &str = "org.elasticsearch.search.query.QueryPhase.execute";

/// What is added to the engine.
#[derive(Clone, Copy, Debug, clap::ValueEnum, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// Nothing.
    Pure,
    /// Nothing either, in another process: what differs from `Pure` is chance.
    PureAgain,
    /// The agent writes events; nobody reads them.
    Instrumented,
    /// The agent writes events, and the governor reads them and writes frequencies into a
    /// simulated sysfs.
    Scheduled,
    /// A system call writes each event to a file on tmpfs.
    WritePerEvent,
}

impl Way {
    /// Whether the agent writes a ring.
    #[must_use]
    pub fn has_ring(self) -> bool {
        matches!(self, Self::Instrumented | Self::Scheduled)
    }
}
