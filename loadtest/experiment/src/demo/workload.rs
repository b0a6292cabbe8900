// SPDX-License-Identifier: Apache-2.0
//! What is sent, the same for every way.

pub(crate) mod feeds;
mod trace;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;
use weir_replay::workload::{self, Request};

use crate::demo::plan::{Plan, Work};
use crate::demo::programs::Programs;
use crate::driver;

/// In the order of the table.
pub(crate) const PRIORITIES: [&str; 2] = ["high", "low"];

/// As weir-replay's library made it.
pub(crate) struct Workload {
    pub(crate) file: PathBuf,
    /// The folder of feeds, where hosts really work: their store, and what requests carry.
    pub(crate) feeds: Option<PathBuf>,
    /// For the head of the table.
    pub(crate) description: String,
}

impl Workload {
    /// Makes it, and the feeds it needs, in the folder.
    pub(crate) fn prepare(programs: &Programs, plan: &Plan, folder: &Path) -> Result<Self> {
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
