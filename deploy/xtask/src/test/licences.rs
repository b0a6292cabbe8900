// SPDX-License-Identifier: Apache-2.0
//! What `deny.toml` allows: licences, sources and crates.

use anyhow::{Result, bail};

use crate::test::summary::Outcome;
use crate::workspace::Workspace;
use weir_stage::command::Run;

/// Without advisories: their database changes by the day and is fetched from the network, so the
/// same commit could pass and fail. The public workflow checks them apart.
const CHECKS: [&str; 3] = ["licenses", "bans", "sources"];

pub(super) fn check(workspace: &Workspace) -> Result<Outcome> {
    if workspace
        .cargo()
        .args(["deny", "--version"])
        .captured()
        .is_err()
    {
        let why = "cargo-deny is not installed: `cargo install cargo-deny --locked`";
        return Ok(Outcome::Skipped(why));
    }
    if workspace
        .cargo()
        .args(["deny", "--log-level", "error", "check"])
        .args(CHECKS)
        .shown()
        .is_err()
    {
        bail!(
            "a dependency is not allowed by deny.toml: replace it, or allow it there with the reason"
        );
    }
    Ok(Outcome::Passed)
}
