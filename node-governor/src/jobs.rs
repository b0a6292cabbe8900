// SPDX-License-Identifier: Apache-2.0
//! Batch jobs: what they are, how far they have come, and who runs them.
//!
//! ```text
//!  governor ── Runner ── starts, freezes, moves ──> the job's group
//!                │                                    │ holds
//!                └─ spawns ──> weir-governor keep ────┴─ starts, waits for ──> the job and all that come from it
//!                                │
//!                STATE/jobs/NAME ┴ lock (held while it lives), started, ended
//! ```
//! The keeper outlives the governor, so that a governor that is killed and started again loses no job.

pub mod forget;
pub mod keeper;
mod record;
pub mod runner;
pub mod spec;

/// Which part of the machine suits a job best. Document 004 (*Cloud Computing Architecture*, semester project
/// report, part 4.2) sorts its jobs by length and scaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Soon done, or no faster on more cores.
    Short,
    /// Neither.
    Medium,
    /// Takes long and gains by more cores.
    Long,
}

/// A batch job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name, of which there is one.
    pub name: String,
    /// What suits it.
    pub queue: Queue,
    /// It is started with so many; at least one.
    pub threads: u32,
}

/// How far a job has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum State {
    /// Not started.
    #[default]
    Waiting,
    /// On its cores.
    Running,
    /// Frozen; it will go on where it was.
    Paused,
    /// Ended well.
    Finished,
    /// Ended otherwise. Those that come after it run all the same.
    Failed,
}

impl State {
    /// Whether it will never need a core again.
    pub fn has_ended(self) -> bool {
        matches!(self, Self::Finished | Self::Failed)
    }
}
