// SPDX-License-Identifier: Apache-2.0
//! weir-control's tests of whole Envoys, which run with either shell of the filter and with any Envoy.

use std::path::{Path, PathBuf};

use anyhow::Result;
use weir_stage::command::Run;

use crate::packages::Packages;
use crate::test::suite::binary::{self, Binary};
use crate::workspace::Workspace;

/// One test of each kind, by day: tables, held and shed requests, bodies, bounces, retries, loss of weir-control.
pub(super) const ONE_OF_EACH: [&str; 10] = [
    "standalone::",
    "bodies::a_body_that_comes_late",
    "bounces::the_first_request",
    "control_loss::when_weir_control_is_killed",
    "headers::a_caller_that_is_not_trusted",
    "holding::a_request_waits",
    "hosts_lost::when_a_host_is_killed",
    "hosts_lost::where_one_host_is_named",
    "overload::a_call_by_grpc",
    "overload::with_dagor",
];

/// What the tests find the filter by.
#[derive(Clone, Copy)]
pub(crate) enum Shell {
    Wasm,
    Native,
}

impl Shell {
    /// By this variable.
    pub(crate) fn variable(self) -> &'static str {
        match self {
            Self::Wasm => "WEIR_FILTER_WASM",
            Self::Native => "WEIR_FILTER_NATIVE",
        }
    }
}

pub(super) struct Suites {
    binaries: Vec<Binary>,
    programs: PathBuf,
}

impl Suites {
    /// Builds the suites of these names, with the programs that they start.
    pub(super) fn build(workspace: &Workspace, names: &[&str]) -> Result<Self> {
        workspace.build_programs()?;
        // Of the whole workspace, as step `test` builds them: of one package they would be built anew, with what that
        // needs.
        let mut build = workspace.cargo();
        build.args(["test", "--workspace"]);
        build.args(names.iter().flat_map(|name| ["--test", name]));
        let packages = Packages::find(workspace)?;
        let mut binaries = binary::build(&mut build, &packages)?;
        // Another package may have one of such a name.
        binaries.retain(|binary| binary.name.starts_with("weir-control "));
        let programs = workspace.target.join("debug");
        Ok(Self { binaries, programs })
    }

    /// Runs their tests that `select` names to them, those of the night too, with this Envoy and filter. The suites
    /// that fail.
    pub(super) fn run(&self, envoy: &Path, filter: (Shell, &Path), select: &[&str]) -> Vec<&str> {
        let (shell, filter) = filter;
        let fails = |binary: &&Binary| {
            let mut command = binary.command();
            command
                .args(select)
                .env("WEIR_ENVOY", envoy)
                .env("WEIR_BIN_DIR", &self.programs)
                .env(weir_needs::NIGHTLY, "1")
                .env(shell.variable(), filter);
            command.shown().is_err()
        };
        let failed = self.binaries.iter().filter(fails);
        failed.map(|binary| &*binary.name).collect()
    }
}
