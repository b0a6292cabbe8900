// SPDX-License-Identifier: Apache-2.0
//! What is sent, the same for every way.

mod feeds;
mod trace;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use weir_replay::workload::{self, Request};

use crate::demo::plan::{Plan, Work};
use crate::demo::programs::Programs;
use crate::driver;

/// In the order of the table.
pub(super) const PRIORITIES: [&str; 2] = ["high", "low"];

/// As weir-replay's library made it.
pub(super) struct Workload {
    pub(super) file: PathBuf,
    /// The folder of feeds, where hosts really work: their store, and what requests carry.
    pub(super) feeds: Option<PathBuf>,
    /// For the head of the table.
    pub(super) description: String,
}

impl Workload {
    /// Makes it, and the feeds it needs, in the folder.
    pub(super) fn prepare(programs: &Programs, plan: &Plan, folder: &Path) -> Result<Self> {
        match &plan.work {
            Work::Emulated(trace) => trace::prepare(&programs.traces, trace, folder),
            Work::Real(feeds) => feeds::prepare(programs, feeds, folder),
        }
        .context("making the workload")
    }
}

/// Writes requests, and what is said of them.
fn save(requests: &[Request], report: &impl Serialize, folder: &Path) -> Result<PathBuf> {
    let file = folder.join("workload.ndjson");
    workload::save(requests, &file).with_context(|| format!("writing {}", file.display()))?;
    driver::write_json(&folder.join("workload.json"), report)?;
    Ok(file)
}
