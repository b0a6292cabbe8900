// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask build-filter`: the filter as the module that Envoy loads, and what it is measured beside.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use crate::remap;
use crate::tools;
use crate::workspace::Workspace;
use weir_stage::command::Run;

pub(crate) const TARGET: &str = "wasm32-wasip1";

/// Every sidecar of a fleet downloads the module and compiles it at start.
const MAX_BYTES: u64 = 1_000_000;

/// Builds `weir_filter.wasm` in the target directory and returns its absolute path.
pub(crate) fn run(workspace: &Workspace) -> Result<PathBuf> {
    let built = build(workspace, "weir-filter", &workspace.target, &[])?;
    let module = workspace.target.join("weir_filter.wasm");
    let context = || format!("copying {} to {}", built.display(), module.display());
    fs::copy(&built, &module).with_context(context)?;
    let content = fs::read(&module).with_context(context)?;
    let bytes = content.len() as u64;
    ensure!(
        !remap::names_crates(workspace, &content),
        "{} names files of this machine: its size and fuel would be others elsewhere",
        workspace.shown(&module)
    );
    println!(
        "filter: {} ({:.0} kB)",
        workspace.shown(&module),
        bytes as f64 / 1e3
    );
    ensure!(
        bytes <= MAX_BYTES,
        "{} has {bytes} bytes, and {MAX_BYTES} is the most it may have\n\
         try: `cargo tree -p weir-filter --target {TARGET} -e normal` for a dependency that came in",
        workspace.shown(&module)
    );
    Ok(module)
}

/// Builds a filter that does nothing, in the same way, and returns its absolute path.
pub(crate) fn no_op(workspace: &Workspace) -> Result<PathBuf> {
    build(workspace, "weir-bench-no-op", &workspace.target, &[])
}

/// Builds the filter as a dynamic module of Envoy, and returns its absolute path.
pub(crate) fn native(workspace: &Workspace) -> Result<PathBuf> {
    build_native(workspace, "weir-native")
}

/// Builds a dynamic module that does nothing, in the same way, and returns its absolute path.
pub(crate) fn native_no_op(workspace: &Workspace) -> Result<PathBuf> {
    build_native(workspace, "weir-bench-no-op")
}

/// The same as tests have programs, and built with them: of its package alone it would have other features, and as a
/// library that C programs load has no sum in its name, all that depends on the filter would be built anew after it.
pub(crate) fn native_debug(workspace: &Workspace) -> Result<PathBuf> {
    workspace.build_programs()?;
    Ok(workspace.target.join("debug").join("libweir_native.so"))
}

fn build_native(workspace: &Workspace, package: &str) -> Result<PathBuf> {
    let mut command = workspace.cargo();
    command
        .args(["build", "--package", package, "--lib"])
        .args(["--profile", "native"])
        .arg("--target-dir")
        .arg(&workspace.target)
        .env("CARGO_TERM_PROGRESS_WHEN", "never");
    remap::apply(workspace, &workspace.target, &mut command)?;
    command.shown()?;
    let module = format!("lib{}.so", package.replace('-', "_"));
    Ok(workspace.target.join("native").join(module))
}

/// Builds the filter that traps when a request tells it to, where nobody takes it for the other one, and returns
/// its absolute path.
pub(crate) fn crashing(workspace: &Workspace) -> Result<PathBuf> {
    let features = ["--features", "crash-test"];
    let target = workspace.target.join("crash-test");
    build(workspace, "weir-filter", &target, &features)
}

fn build(workspace: &Workspace, package: &str, target: &Path, options: &[&str]) -> Result<PathBuf> {
    tools::install_rust_target(workspace, TARGET)?;
    let mut command = workspace.cargo();
    command
        .args(["build", "--package", package, "--lib"])
        .args(["--profile", "wasm", "--target", TARGET])
        .arg("--target-dir")
        .arg(target)
        .args(options)
        // It may be built beside other programs, whose bar is shown.
        .env("CARGO_TERM_PROGRESS_WHEN", "never");
    // Panics name their files: their length shows in the module's size, and in the fuel that a request takes.
    remap::apply(workspace, target, &mut command)?;
    command.shown()?;
    let module = format!("{}.wasm", package.replace('-', "_"));
    Ok(target.join(TARGET).join("wasm").join(module))
}
