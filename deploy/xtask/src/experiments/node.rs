// SPDX-License-Identifier: Apache-2.0
//! One node under its governor: made by the simulator, kept as it is.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::workspace::Workspace;

/// Where `--update` writes it.
const TABLES: &str = "loadtest/simulator/NODE.md";

pub(super) fn run(workspace: &Workspace, seeds: u64, update: bool) -> Result<()> {
    println!("experiments: building weir-sim");
    let [simulator] = workspace.build_release(["weir-sim"])?;
    let folder = workspace.cache().join("experiments");
    fs::create_dir_all(&folder).with_context(|| format!("in {}", folder.display()))?;
    let file = match update {
        true => workspace.root.join(TABLES),
        false => folder.join("NODE.md"),
    };
    println!("experiments: one node, {seeds} seeds");
    let mut command = Command::new(simulator);
    command.args(["node", "report", "--seeds", &seeds.to_string(), "--out"]);
    let status = command.arg(&file).status().context("running weir-sim")?;
    ensure!(status.success(), "weir-sim node report: {status}");
    println!(
        "experiments: the node's tables are {}",
        workspace.shown(&file)
    );
    Ok(())
}
