// SPDX-License-Identifier: Apache-2.0
//! The filter's other shell: the tests of whole Envoys again, with the dynamic module in place of the one of
//! WebAssembly.

use anyhow::{Result, ensure};
use weir_stage::command::Run;

use crate::packages::Packages;
use crate::test::suite::binary;
use crate::test::summary::Outcome;
use crate::workspace::Workspace;
use crate::{build_filter, tools};

/// By day one test of each kind: tables, held and shed requests, bodies, bounces, retries, loss of weir-control.
const BY_DAY: [&str; 8] = [
    "standalone::",
    "bodies::a_body_that_comes_late",
    "bounces::the_first_request",
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
    let envoy = tools::install(workspace)?.envoy;
    let wanted: &[&str] = match is_nightly {
        true => &["envoy", "faults", "reloads"],
        false => &["envoy", "faults"],
    };
    // Of the whole workspace, as step `test` builds them: of one package they would be built anew, with what that needs.
    let mut build = workspace.cargo();
    build.args(["test", "--workspace"]);
    build.args(wanted.iter().flat_map(|name| ["--test", name]));
    let packages = Packages::find(workspace)?;
    let mut failed = Vec::new();
    let mut binaries = binary::build(&mut build, &packages)?;
    // Another package may have one of such a name.
    binaries.retain(|binary| binary.name.starts_with("weir-control "));
    for binary in binaries {
        let mut command = binary.command();
        match is_nightly {
            true => command.args(OTHERS.iter().flat_map(|name| ["--skip", name])),
            false => command.args(BY_DAY),
        };
        command
            .env("WEIR_ENVOY", &envoy)
            .env("WEIR_BIN_DIR", workspace.target.join("debug"))
            .env("WEIR_FILTER_NATIVE", &module);
        if command.shown().is_err() {
            failed.push(binary.name);
        }
    }
    ensure!(failed.is_empty(), "{} failed", failed.join(", "));
    Ok(Outcome::Passed)
}
