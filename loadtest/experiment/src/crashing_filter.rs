// SPDX-License-Identifier: Apache-2.0
//! The filter that panics when it is told to.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use weir_stage::command::Run;

/// Builds it where the tests of weir-control do; nothing else finds it there.
///
/// # Errors
/// Cargo fails.
pub fn build() -> Result<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .context("the repository")?;
    let target = match std::env::var_os("CARGO_TARGET_DIR") {
        Some(folder) => root.join(folder),
        None => root.join("target"),
    };
    let folder = target.join("crash-test");
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command
        .current_dir(root)
        .args([
            "build",
            "--quiet",
            "--package",
            "weir-filter",
            "--profile",
            "wasm",
            "--lib",
        ])
        .args([
            "--features",
            "crash-test",
            "--config",
            "profile.wasm.lto=\"off\"",
        ])
        .args(["--config", "profile.wasm.opt-level=1"])
        .args(["--config", "profile.wasm.codegen-units=16"])
        .args(["--target", "wasm32-wasip1", "--target-dir"])
        .arg(&folder);
    command.shown()?;
    Ok(folder.join("wasm32-wasip1/wasm/weir_filter.wasm"))
}
