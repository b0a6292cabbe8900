// SPDX-License-Identifier: Apache-2.0
//! A load as one file of JSON, which k6 and the replayer share.
//!
//! ```text
//! scenario.json ── written ──check──> Scenario ──make(fleet, seed)──> requests, Plan
//!                                                                       │        │
//!                                                      workload file <──┘        └──> plan file
//!                                                (weir-replay run, k6)        (k6, cargo xtask load)
//! ```
//! Only this reads a scenario: what k6 and the replayer send are the same requests at the same moments.

mod check;
mod made;
mod plan;
#[cfg(test)]
mod tests;
mod trace;
mod written;

use std::path::{Path, PathBuf};
use std::time::Duration;

pub use made::{Distribution, Keys, Made, Pace, Stage};
pub use plan::{Bound, Capacity, Figure, Plan, Threshold, Timed};
pub use trace::Trace;

use crate::workload::Request;

/// In a scenario.
const MOST_REQUESTS: f64 = 10_000_000.0;

/// A scenario whose every field is good.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Its name.
    pub name: String,
    /// What it is to show, in words.
    pub objective: String,
    /// An answer counts if it comes within this time of the moment when its request was due.
    pub deadline: Duration,
    /// What is sent.
    pub load: Load,
    /// What is wanted of the answers.
    pub thresholds: Vec<Threshold>,
}

/// Where the requests come from.
#[derive(Debug, Clone, PartialEq)]
pub enum Load {
    /// They are made up.
    Made(Made),
    /// They were recorded.
    Trace(Trace),
}

/// Who is to serve it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fleet {
    /// So many cores in all, which a job holds for its run time: what they can do follows.
    Cores(f64),
    /// What was measured: mean requests a second.
    Requests(f64),
}

/// Why there is no workload.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is not there.
    #[error("{0}: {1}")]
    Unread(PathBuf, std::io::Error),
    /// A field is not as it should be.
    #[error("{file}: {field}: {reason}")]
    Bad {
        /// The scenario.
        file: PathBuf,
        /// As a path in the JSON.
        field: String,
        /// Why it was refused.
        reason: String,
    },
    /// The trace does not make a workload.
    #[error("{0}: trace: {1}")]
    Trace(PathBuf, crate::azure::Error),
    /// It can only be made for another kind of fleet.
    #[error("{0}")]
    Fleet(&'static str),
    /// They would not fit into memory everywhere, and are rather a slip of a digit.
    #[error(
        "{0:.0} requests are expected, more than {MOST_REQUESTS}: rates, the capacity or the time are too large"
    )]
    TooMany(f64),
}

impl Scenario {
    /// Reads a scenario and checks it; paths in it are relative to it.
    ///
    /// # Errors
    /// The file is missing, or a field is wrong.
    pub fn read(file: &Path) -> Result<Self, Error> {
        let text =
            std::fs::read_to_string(file).map_err(|why| Error::Unread(file.to_owned(), why))?;
        let folder = file.parent().unwrap_or(Path::new(""));
        Self::parse(&text, folder).map_err(|(field, reason)| Error::Bad {
            file: file.to_owned(),
            field,
            reason,
        })
    }

    /// Makes its requests, in the order of time, for a fleet. The same scenario, fleet and seed give the
    /// same requests. With `lasting` all stages are shortened or stretched so that it lasts so long.
    ///
    /// # Errors
    /// The trace cannot be read, or the fleet is told in another way than the scenario needs.
    pub fn make(
        &self,
        fleet: Fleet,
        lasting: Option<Duration>,
        seed: u64,
    ) -> Result<(Vec<Request>, Plan), Error> {
        match &self.load {
            Load::Made(made) => made::make(self, made, fleet, lasting, seed),
            Load::Trace(trace) => trace::make(self, trace, fleet, lasting, seed),
        }
    }
}
