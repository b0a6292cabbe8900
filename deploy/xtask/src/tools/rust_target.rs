// SPDX-License-Identifier: Apache-2.0
//! Standard libraries of Rust for other targets.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use weir_stage::command::Run;

pub(super) fn install(target: &str, root: &Path) -> Result<()> {
    if installed(target, root)? {
        println!("tools: {target}: installed");
        return Ok(());
    }
    println!("tools: {target}: installing with rustup");
    Command::new("rustup")
        .args(["target", "add", target])
        .current_dir(root)
        .shown()
        .with_context(|| {
            format!(
                "installing the Rust target {target}\n\
                 try: is the network reachable, and is this toolchain one of rustup's? If it is \
                 your system's, install its package of the standard library for {target}"
            )
        })?;
    ensure!(
        installed(target, root)?,
        "rustup added {target}, but rustc does not find it"
    );
    Ok(())
}

/// Asks rustc rather than rustup, so that toolchains from elsewhere do too.
pub(super) fn installed(target: &str, root: &Path) -> Result<bool> {
    let folder = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .current_dir(root)
        .captured()?;
    Ok(PathBuf::from(folder.trim()).is_dir())
}
