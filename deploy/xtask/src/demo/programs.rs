// SPDX-License-Identifier: Apache-2.0
//! What the demonstration runs.

use std::path::PathBuf;

use anyhow::Result;

use crate::workspace::Workspace;
use crate::{build_filter, feeds, tools};

/// By absolute path.
pub(super) struct Programs {
    pub(super) envoy: PathBuf,
    pub(super) filter: PathBuf,
    pub(super) control: PathBuf,
    pub(super) worker: PathBuf,
    pub(super) replay: PathBuf,
    pub(super) feeds: PathBuf,
}

impl Programs {
    /// Installs and builds what is missing.
    pub(super) fn build(workspace: &Workspace) -> Result<Self> {
        let envoy = tools::install(workspace)?.envoy;
        let filter = build_filter::run(workspace)?;
        let packages = ["weir-control", "weir-worker", "weir-replay", feeds::PACKAGE];
        println!("demo: building {}", packages.join(", "));
        let [control, worker, replay, feeds] = workspace.build_release(packages)?;
        Ok(Self {
            envoy,
            filter,
            control,
            worker,
            replay,
            feeds,
        })
    }
}
