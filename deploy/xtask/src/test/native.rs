// SPDX-License-Identifier: Apache-2.0
//! The filter's other shell: the tests of the filter and of whole Envoys again, with the dynamic module in place of the
//! one of WebAssembly.

use std::path::Path;

use anyhow::{Result, ensure};
use weir_stage::command::Run;

use crate::test::summary::Outcome;
use crate::test::untested;
use crate::test::whole_envoys::{ONE_OF_EACH, Shell, Suites};
use crate::workspace::Workspace;
use crate::{build_filter, tools};

/// What only the other shell has: VMs that trap, and modules that come by weir-control.
const OTHERS: [&str; 2] = ["crash::", "module::"];

pub(super) fn run(workspace: &Workspace, is_nightly: bool) -> Result<Outcome> {
    let module = build_filter::native_debug(workspace)?;
    let envoy = tools::install(workspace)?.envoy;
    let (suites, select): (&[&str], Vec<&str>) = match is_nightly {
        true => (&["envoy", "faults", "reloads"], without_others()),
        false => (&["envoy", "faults"], ONE_OF_EACH.to_vec()),
    };
    filter(workspace, &module)?;
    untested::later(workspace, &envoy, &module)?;
    let suites = Suites::build(workspace, suites)?;
    let failed = suites.run(&envoy, (Shell::Native, &module), &select);
    ensure!(failed.is_empty(), "{} failed", failed.join(", "));
    Ok(Outcome::Passed)
}

fn without_others() -> Vec<&'static str> {
    OTHERS.iter().flat_map(|name| ["--skip", name]).collect()
}

/// The filter's own tests, on an Envoy that is played.
fn filter(workspace: &Workspace, module: &Path) -> Result<()> {
    let mut command = workspace.cargo();
    // Of the whole workspace, as step `test` builds them.
    command.args(["test", "--workspace", "--test", "filter"]);
    command.args(["--", "--skip", "wasm::"]);
    command.env(Shell::Native.variable(), module);
    command.shown()
}
