// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask lab`: measurements of the rule-processing host, made by `weir-lab`.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;

use crate::workspace::Workspace;
use weir_stage::command::Run;

#[derive(clap::Args)]
// Its own help is of more use than ours.
#[command(disable_help_flag = true)]
pub(crate) struct Args {
    /// rules, orders, linear-road, suspension or emulation, and flags; --help lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    args: Vec<OsString>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let [program] = workspace.build_release(["weir-lab"])?;
    Command::new(program).args(&args.args).shown()
}
