// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask colocation`: memcached beside real batch jobs, four ways in one run.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::tools::{self, BATCH, MEMCACHED};
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// One short round: a taste in less than 3 minutes, with rougher figures
    #[arg(long)]
    quick: bool,
    /// Of loads, of what jobs work on, and of the order of ways
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these ways
    #[arg(long = "way", value_name = "WAY")]
    ways: Vec<OsString>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let packages = ["weir-colocation", "weir-memcached-load", "weir-governor"];
    println!("colocation: building {}", packages.join(", "));
    let [colocation, load, governor] = workspace.build_release(packages)?;
    let folder = workspace.new_folder("colocation")?;
    let mut command = Command::new(colocation);
    command.current_dir(&workspace.root);
    for name in [MEMCACHED].into_iter().chain(BATCH) {
        let program = tools::program(workspace, name)?;
        command.arg(format!("--{name}")).arg(program);
    }
    for (flag, path) in [
        ("--load", &load),
        ("--governor", &governor),
        ("--folder", &folder),
    ] {
        command.arg(flag).arg(path);
    }
    command.args(["--seed", &args.seed.to_string()]);
    if args.quick {
        command.arg("--quick");
    }
    for way in &args.ways {
        command.arg("--way").arg(way);
    }
    // weir-colocation ends what it has started; until then this waits.
    interrupt::catch()?;
    let ran = command.shown();
    println!(
        "colocation: the table, the report, every round and every log are kept in {}",
        workspace.shown(&folder)
    );
    ran
}
