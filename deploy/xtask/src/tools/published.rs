// SPDX-License-Identifier: Apache-2.0
//! Programs that are published as crates: `cargo install` builds them by the crate's own `Cargo.lock`, whose sums
//! Cargo checks.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::tools::pins::Crate;
use weir_stage::command::Run;

/// Where the program is, once installed.
pub(super) fn installed_path(name: &str, of: &Crate, cache: &Path) -> PathBuf {
    let folder = cache.join(format!("{name}-{}", of.version));
    folder.join("bin").join(name)
}

/// Makes sure that the program is in the cache. It is not optimised: that takes minutes, and it runs for seconds.
pub(super) fn install(name: &str, of: &Crate, root: &Path, cache: &Path) -> Result<PathBuf> {
    let path = installed_path(name, of, cache);
    if path.is_file() {
        println!("tools: {name} {}: installed", of.version);
        return Ok(path);
    }
    println!("tools: {name} {}: building, in a minute or two", of.version);
    let built = cache.join(format!(".{name}-built"));
    let folder = cache.join(format!("{name}-{}", of.version));
    let result = Command::new("cargo")
        .current_dir(root)
        .args(["install", name, "--version", &of.version, "--locked"])
        .arg("--root")
        .arg(&folder)
        .arg("--target-dir")
        .arg(&built)
        .env("CARGO_PROFILE_RELEASE_OPT_LEVEL", "0")
        .env("CARGO_PROFILE_RELEASE_LTO", "off")
        .env("CARGO_PROFILE_RELEASE_CODEGEN_UNITS", "16")
        .env("CARGO_PROFILE_RELEASE_DEBUG", "false")
        .shown();
    // Hundreds of megabytes that nobody needs again.
    let _ = std::fs::remove_dir_all(&built);
    result.map(|_| path)
}
