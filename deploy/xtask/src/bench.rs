// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask bench`: the benchmarks of what runs for every request.

use anyhow::Result;

use crate::workspace::Workspace;
use weir_stage::command::Run;

/// The packages with benchmarks.
const PACKAGES: [&str; 1] = ["weir-policy"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only benchmarks whose name contains this
    filter: Option<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let mut command = workspace.cargo();
    command.args(["bench", "--benches"]);
    for package in PACKAGES {
        command.args(["--package", package]);
    }
    command.arg("--").args(&args.filter);
    command.shown()
}
