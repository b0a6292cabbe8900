// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask shared-node`: what the mesh refuses of a host that shares its node, with the governor and without.

use std::ffi::OsString;
use std::process::Command;

use anyhow::Result;
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::workspace::Workspace;
use crate::{build_filter, tools};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// One short round: a taste in some 2 minutes, with rougher figures
    #[arg(long)]
    quick: bool,
    /// Of the moments of requests and of the order of ways
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only these ways
    #[arg(long = "way", value_name = "WAY")]
    ways: Vec<OsString>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let envoy = tools::install(workspace)?.envoy;
    let filter = build_filter::run(workspace)?;
    let packages = [
        "weir-shared-node",
        "weir-control",
        "weir-governor",
        "weir-worker",
        "weir-replay",
    ];
    println!("shared-node: building {}", packages.join(", "));
    let [shared_node, control, governor, worker, replay] = workspace.build_release(packages)?;
    let folder = workspace.new_folder("shared-node")?;
    let mut command = Command::new(shared_node);
    command.current_dir(&workspace.root).arg("run");
    for (flag, path) in [
        ("--envoy", &envoy),
        ("--filter", &filter),
        ("--control", &control),
        ("--governor", &governor),
        ("--worker", &worker),
        ("--replay", &replay),
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
    // weir-shared-node ends what it has started; until then this waits.
    interrupt::catch()?;
    let ran = command.shown();
    println!(
        "shared-node: the table, the report, every round, every request and every log are kept in {}",
        workspace.shown(&folder)
    );
    ran
}
