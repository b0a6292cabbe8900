// SPDX-License-Identifier: Apache-2.0
//! The filter in the Envoys that users have beside the pinned one.

use anyhow::{Result, ensure};

use crate::test::summary::Outcome;
use crate::test::untested;
use crate::test::whole_envoys::{Shell, Suites};
use crate::workspace::Workspace;
use crate::{build_filter, tools};

/// By their names among the tools, with the tests of what they do not have.
const OTHERS: [(&str, &[&str]); 4] = [
    // Custom tags of spans by format, which `tracing.yaml` has, came with 1.37.
    (
        "envoy-1.36",
        &["stats::reasons_are_in_metrics_access_log_and_spans"],
    ),
    ("envoy-1.37", &[]),
    ("envoy-1.38", &[]),
    ("envoy-1.39", &[]),
];

pub(super) fn run(workspace: &Workspace) -> Result<Outcome> {
    let filter = build_filter::run(workspace)?;
    let native = build_filter::native_debug(workspace)?;
    let suites = Suites::build(workspace, &["envoy", "faults"])?;
    let mut rows = Vec::new();
    for (name, missing) in OTHERS {
        let envoy = tools::build(workspace, name)?;
        println!("== {name}");
        let select: Vec<&str> = missing.iter().flat_map(|name| ["--skip", name]).collect();
        let mut failed = suites.run(&envoy, (Shell::Wasm, &filter), &select);
        if let Err(error) = untested::older(workspace, &envoy, &native) {
            eprintln!("{error:#}");
            failed.push("takes the dynamic module");
        }
        rows.push((name, missing, failed));
    }
    for (name, missing, failed) in &rows {
        let told = match failed.as_slice() {
            [] if missing.is_empty() => "all passed".to_owned(),
            [] => format!(
                "all passed but for what it does not have: {}",
                missing.join(", ")
            ),
            failed => format!("FAILED: {}", failed.join(", ")),
        };
        println!("{name:<12} {told}");
    }
    let failed = rows.iter().filter(|(.., failed)| !failed.is_empty());
    let failed: Vec<&str> = failed.map(|(name, ..)| *name).collect();
    ensure!(failed.is_empty(), "tests failed in {}", failed.join(", "));
    Ok(Outcome::Passed)
}
