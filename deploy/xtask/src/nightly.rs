// SPDX-License-Identifier: Apache-2.0
//! The nightly compiler, for what stable ones do not have: libFuzzer's instrumentation, and Miri.

use std::process::Command;

use anyhow::Result;
use weir_stage::command::Run;

use crate::workspace::Workspace;

const TOOLCHAIN: &str = "nightly";

/// Installs it where there is none.
pub(crate) fn install() -> Result<()> {
    if rustup(&["toolchain", "list"])
        .captured()?
        .contains(TOOLCHAIN)
    {
        return Ok(());
    }
    rustup(&["toolchain", "install", TOOLCHAIN, "--profile", "minimal"]).shown()
}

/// Installs parts of it that are missing.
pub(crate) fn install_components(names: &[&str]) -> Result<()> {
    install()?;
    let list = ["component", "list", "--installed", "--toolchain", TOOLCHAIN];
    let installed = rustup(&list).captured()?;
    // The name of one that is for a machine goes on with the machine's.
    let is_installed = |name: &&str| installed.lines().any(|line| line.starts_with(*name));
    if names.iter().all(is_installed) {
        return Ok(());
    }
    let mut add = rustup(&["component", "add", "--toolchain", TOOLCHAIN]);
    add.args(names).shown()
}

/// A program of it, or one that asks Cargo for the compiler.
pub(crate) fn command(workspace: &Workspace) -> Command {
    let mut command = rustup(&["run", TOOLCHAIN]);
    command
        .current_dir(&workspace.root)
        // That of the toolchain which runs this.
        .env_remove("CARGO")
        .env_remove("RUSTC")
        .env("CARGO_HOME", &workspace.cargo_home)
        .env("CARGO_TARGET_DIR", &workspace.target);
    command
}

fn rustup(arguments: &[&str]) -> Command {
    let mut command = Command::new("rustup");
    command.args(arguments);
    command
}
