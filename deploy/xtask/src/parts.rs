// SPDX-License-Identifier: Apache-2.0
//! What is linked into a package, as Cargo and the toolchain tell it.

use std::fs;

use anyhow::{Context, Result};
use weir_packaging::{Parts, parts};
use weir_stage::command::Run;

use crate::rustc;
use crate::workspace::Workspace;

/// In every toolchain: its component `rustc` brings it.
const STANDARD_LIBRARY: &str = "share/doc/rust/COPYRIGHT-library.html";

/// Of a package as it is built for a target.
pub(crate) fn of(workspace: &Workspace, package: &str, target: &str) -> Result<Parts> {
    let tree = workspace
        .cargo()
        .args(["tree", "--locked", "--package", package, "--target", target])
        .args(["--edges", "normal,no-proc-macro"])
        .args(["--prefix", "none", "--format", "{p}"])
        .captured()?;
    let metadata = workspace
        .cargo()
        .args(["metadata", "--locked", "--format-version", "1"])
        .args(["--filter-platform", target])
        .captured()?;
    let page = rustc::sysroot(workspace)?.join(STANDARD_LIBRARY);
    let context = || format!("reading {}", page.display());
    Ok(Parts {
        crates: parts::read(&tree, &metadata, package)?,
        rust: rustc::version(workspace, "release")?,
        standard_library: fs::read_to_string(&page).with_context(context)?,
    })
}
