// SPDX-License-Identifier: Apache-2.0
//! What the compiler that the workspace is built by says of itself.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result};
use weir_stage::command::Run;

use crate::workspace::Workspace;

/// Where it is installed.
pub(crate) fn sysroot(workspace: &Workspace) -> Result<PathBuf> {
    Ok(asked(workspace, &["--print", "sysroot"])?.trim().into())
}

/// A field of its version, as `commit-hash` and `host`.
pub(crate) fn version(workspace: &Workspace, field: &str) -> Result<String> {
    let said = asked(workspace, &["--version", "--verbose"])?;
    let mut lines = said.lines().filter_map(|line| line.split_once(": "));
    let found = lines.find(|(name, _)| *name == field);
    let (_, value) =
        found.with_context(|| format!("`rustc --version --verbose` tells no {field}"))?;
    Ok(value.to_owned())
}

fn asked(workspace: &Workspace, arguments: &[&str]) -> Result<String> {
    let mut command = Command::new("rustc");
    command.current_dir(&workspace.root).args(arguments);
    command.captured()
}
