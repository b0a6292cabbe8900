// SPDX-License-Identifier: Apache-2.0
//! The filter's other shell: the tests of whole Envoys again, with the dynamic module in place of the one of
//! WebAssembly.

use anyhow::Result;
use weir_stage::command::Run;

use crate::test::summary::Outcome;
use crate::workspace::Workspace;
use crate::{build_filter, tools};

/// By day one test of each kind: tables, held and shed requests, bodies, retries, loss of weir-control.
const BY_DAY: [&str; 7] = [
    "standalone::",
    "bodies::a_body_that_comes_late",
    "control_loss::when_weir_control_is_killed",
    "headers::a_caller_that_is_not_trusted",
    "holding::a_request_waits",
    "hosts_lost::when_a_host_is_killed",
    "overload::with_dagor",
];
/// What only the other shell has: VMs that trap, modules that come by weir-control, and files that name one.
const OTHERS: [&str; 3] = ["crash::", "module::", "watched::"];

pub(super) fn run(workspace: &Workspace, is_nightly: bool) -> Result<Outcome> {
    let module = build_filter::native_debug(workspace)?;
    workspace.build_programs()?;
    let mut command = workspace.cargo();
    command
        .args(["test", "--package", "weir-control", "--no-fail-fast"])
        .args(["--test", "envoy", "--test", "faults"])
        .env("WEIR_ENVOY", tools::install(workspace)?.envoy)
        .env("WEIR_BIN_DIR", workspace.target.join("debug"))
        .env("WEIR_FILTER_NATIVE", module);
    match is_nightly {
        true => {
            command.args(["--test", "reloads", "--"]);
            for name in OTHERS {
                command.args(["--skip", name]);
            }
        }
        false => {
            command.arg("--").args(BY_DAY);
        }
    }
    command.shown()?;
    Ok(Outcome::Passed)
}
