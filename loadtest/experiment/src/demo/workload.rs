// SPDX-License-Identifier: Apache-2.0
//! What is sent, the same for every way.

mod feeds;
mod trace;

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::demo::plan::{Plan, Work};
use crate::demo::programs::Programs;
use crate::workspace::Workspace;

/// In the order of the table.
pub(super) const PRIORITIES: [&str; 2] = ["high", "low"];

/// As weir-replay made it.
pub(super) struct Workload {
    pub(super) file: PathBuf,
    /// The folder of feeds, where hosts really work: their store, and what requests carry.
    pub(super) feeds: Option<PathBuf>,
    /// For the head of the table.
    pub(super) description: String,
}

impl Workload {
    /// Makes it, and the feeds it needs, in the folder.
    pub(super) fn prepare(
        workspace: &Workspace,
        programs: &Programs,
        plan: &Plan,
        folder: &Path,
    ) -> Result<Self> {
        match &plan.work {
            Work::Emulated(trace) => {
                trace::prepare(workspace, &programs.replay, trace, plan, folder)
            }
            Work::Real(feeds) => feeds::prepare(programs, feeds, plan, folder),
        }
    }
}
