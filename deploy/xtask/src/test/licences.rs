// SPDX-License-Identifier: Apache-2.0
//! What `deny.toml` allows: licences, sources, crates and versions.

use std::process::Command;

use anyhow::{Result, bail};

use crate::test::summary::Outcome;
use crate::tools::{self, CARGO_DENY};
use crate::workspace::Workspace;
use weir_stage::command::Run;

/// They need nothing but the crates.
const CHECKS: [&str; 3] = ["licenses", "bans", "sources"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    let program = match tools::build(workspace, CARGO_DENY) {
        Ok(program) => program,
        Err(error) => {
            println!("DEPENDENCIES ARE NOT CHECKED: {error:#}");
            return Ok(Outcome::Skipped("cargo-deny cannot be built here"));
        }
    };
    let deny = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.current_dir(&workspace.root);
        command.args(["--log-level", "error"]).args(arguments);
        command
    };
    if deny(&["check"]).args(CHECKS).shown().is_err() {
        bail!(
            "a dependency is not allowed by deny.toml: replace it, or allow it there with the reason"
        );
    }
    // A database that changes by the day and comes from the network.
    if let Err(error) = deny(&["fetch", "db"]).captured() {
        println!("ADVISORIES ARE NOT CHECKED, their database cannot be fetched: {error:#}");
        return Ok(Outcome::Skipped(
            "licences, bans and sources are as allowed; advisories cannot be fetched here",
        ));
    }
    if deny(&["check", "advisories"]).shown().is_err() {
        bail!("something is known to be wrong with a version in Cargo.lock: see above");
    }
    Ok(Outcome::Passed)
}
