// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask keep`: measures again what is kept, and says what changed.

use std::path::Path;

use anyhow::Result;
use weir_reference::RENEW;
use weir_stage::command::Run;

use crate::test::licences;
use crate::test::whole_envoys::Shell;
use crate::workspace::Workspace;
use crate::{build_filter, sizes};

pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let filter = build_filter::run(workspace)?;
    costs(workspace, Shell::Wasm, &filter)?;
    costs(
        workspace,
        Shell::Native,
        &build_filter::native_debug(workspace)?,
    )?;
    workspace
        .cargo()
        .args(["test", "--quiet", "--package", "xtask", "--"])
        .args(["--exact", "commands::commands_are_written_as_they_are"])
        .args(["documents::the_page_of_the_documents_is_written_as_their_rows_are"])
        .env(RENEW, "1")
        .shown()?;
    references(workspace, &filter)?;
    sizes::keep(workspace)?;
    licences::keep(workspace)?;
    println!("keep: `git diff` shows what changed: say why where you commit it");
    Ok(())
}

/// What requests cost in a shell of the filter.
fn costs(workspace: &Workspace, shell: Shell, filter: &Path) -> Result<()> {
    const TEST: &str = "cost::fuel_and_host_calls_are_those_that_are_kept";
    workspace
        .cargo()
        .args(["test", "--quiet", "--package", "weir-filter"])
        .args(["--test", "filter", "--", "--exact", TEST, "--nocapture"])
        .env(shell.variable(), filter)
        .env(RENEW, "1")
        .shown()
}

/// COMMANDS.md, CONFIGURATION.md and METRICS.md of the programs.
fn references(workspace: &Workspace, filter: &Path) -> Result<()> {
    const PACKAGES: [&str; 9] = [
        "weir-control",
        "weir-experiment",
        "weir-feeds",
        "weir-filter",
        "weir-governor",
        "weir-replay",
        "weir-sim",
        "weir-worker",
        "weirctl",
    ];
    let packages = PACKAGES.iter().flat_map(|package| ["--package", package]);
    workspace
        .cargo()
        .args(["test", "--quiet"])
        .args(packages)
        .args(["--lib", "--test", "reference", "--test", "commands"])
        .args(["--test", "filter", "--", "reference_of_"])
        .env("WEIR_FILTER_WASM", filter)
        .env(RENEW, "1")
        .shown()
}
