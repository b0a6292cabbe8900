// SPDX-License-Identifier: Apache-2.0
//! What the mesh runs.

use std::path::PathBuf;

use anyhow::Result;
use weir_mesh::Programs;

use crate::build_filter;
use crate::tools::{self, CONSUL, PROMETHEUS};
use crate::workspace::Workspace;

const PACKAGES: [&str; 3] = ["weir-mesh", "weir-control", "weir-worker"];

/// Installs and builds what is missing; the supervisor comes first.
pub(super) fn build(
    workspace: &Workspace,
    prometheus: bool,
    debug: bool,
) -> Result<(PathBuf, Programs)> {
    let envoy = tools::install(workspace)?.envoy;
    let consul = tools::build(workspace, CONSUL)?;
    let prometheus = match prometheus {
        true => Some(tools::program(workspace, PROMETHEUS)?),
        false => None,
    };
    let filter = build_filter::run(workspace)?;
    println!("mesh: building {}", PACKAGES.join(", "));
    let built = workspace.build(&PACKAGES, debug)?;
    let [supervisor, control, worker] = PACKAGES.map(|package| built.join(package));
    let programs = Programs {
        envoy,
        consul,
        prometheus,
        filter,
        control,
        worker,
    };
    Ok((supervisor, programs))
}
