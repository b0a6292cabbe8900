// SPDX-License-Identifier: Apache-2.0
//! Of the service's cores and the batch jobs.

use std::time::Duration;

use crate::cores::{Cores, Reason};
use crate::jobs::State;
use crate::sensed::Row;

/// Who has what, and how far the jobs are.
#[derive(Clone, Debug, Default)]
pub struct SharesBook {
    /// The service's, as planned.
    pub service: Cores,
    /// Why.
    pub reason: Reason,
    /// The mesh refuses requests or is about to.
    pub pressed: bool,
    /// Cores that the service uses; none where that is not known.
    pub cpu: Option<f64>,
    /// What the mesh said last.
    pub row: Option<Row>,
    /// Thousandths of a core that were reported to the mesh.
    pub capacity_millicores: u32,
    /// Times that the service's cores changed.
    pub moves: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// In their order.
    pub jobs: Vec<JobBook>,
}

/// One job.
#[derive(Clone, Debug, Default)]
pub struct JobBook {
    /// Its name.
    pub name: String,
    /// How far it has come.
    pub state: State,
    /// As planned.
    pub cores: Cores,
    /// It was started with so many.
    pub threads: u32,
    /// Time in which it was running.
    pub ran: Duration,
    /// Time in which it was frozen.
    pub paused: Duration,
    /// Times that it was frozen.
    pub pauses: u64,
    /// CPU time that it has used, where that is known.
    pub cpu: Option<Duration>,
    /// CPU time that it takes in all, where that is configured.
    pub takes: Option<Duration>,
    /// How it ended: an exit code, or 128 and the signal.
    pub code: Option<i32>,
    /// What went wrong.
    pub trouble: Option<String>,
}
