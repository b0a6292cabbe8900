// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask soak`: whether anything grows while hosts, keys, tables, VMs and callers come and go.

use std::process::Command;

use anyhow::Result;
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::workspace::Workspace;
use crate::{build_filter, tools};

#[derive(clap::Args)]
pub(crate) struct Args {
    /// How long; the first half warms up, and less than 10 minutes are not judged
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let envoy = tools::install(workspace)?.envoy;
    let filter = build_filter::crashing(workspace)?;
    let packages = ["weir-soak", "weir-control", "weir-worker"];
    println!("soak: building {}", packages.join(", "));
    let [soak, control, worker] = workspace.build_release(packages)?;
    let folder = workspace.new_folder("soak")?;
    let mut command = Command::new(soak);
    command.current_dir(&workspace.root);
    for (flag, path) in [
        ("--envoy", &envoy),
        ("--filter", &filter),
        ("--control", &control),
        ("--worker", &worker),
        ("--folder", &folder),
    ] {
        command.arg(flag).arg(path);
    }
    command.args(["--minutes", &args.minutes.to_string()]);
    // weir-soak ends what it has started; until then this waits.
    interrupt::catch()?;
    let ran = command.shown();
    println!(
        "soak: the report, every sample and every log are kept in {}",
        workspace.shown(&folder)
    );
    ran
}
