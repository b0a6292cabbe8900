// SPDX-License-Identifier: Apache-2.0
//! The filter in the Envoys that users have beside the pinned one.

use anyhow::{Result, ensure};

use crate::test::summary::Outcome;
use crate::test::whole_envoys::{ONE_OF_EACH, Shell, Suites};
use crate::workspace::Workspace;
use crate::{build_filter, tools};

/// By their names among the tools.
const OTHERS: [&str; 4] = ["envoy-1.36", "envoy-1.37", "envoy-1.38", "envoy-1.39"];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let filter = build_filter::run(workspace)?;
    let suites = Suites::build(workspace, &["envoy", "faults"])?;
    let mut rows = Vec::new();
    for name in OTHERS {
        let envoy = tools::build(workspace, name)?;
        println!("== {name}");
        rows.push((
            name,
            suites.run(&envoy, (Shell::Wasm, &filter), &ONE_OF_EACH),
        ));
    }
    for (name, failed) in &rows {
        let told = match failed.as_slice() {
            [] => "all passed".to_owned(),
            failed => format!("FAILED: {}", failed.join(", ")),
        };
        println!("{name:<12} {told}");
    }
    let failed = rows.iter().filter(|(_, failed)| !failed.is_empty());
    let failed: Vec<&str> = failed.map(|(name, _)| *name).collect();
    ensure!(failed.is_empty(), "tests failed in {}", failed.join(", "));
    Ok(Outcome::Passed)
}
