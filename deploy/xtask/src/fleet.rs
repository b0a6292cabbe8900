// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask fleet`: what a weir-control costs that tells a thousand sidecars of two hundred hosts.

use std::process::Command;

use anyhow::Result;
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Sidecars, EMULATED
    #[arg(long, default_value_t = 1000)]
    sidecars: usize,
    /// Hosts, EMULATED
    #[arg(long, default_value_t = 200)]
    hosts: usize,
    /// Keys in each host's cache, of which one is replaced each second; 0: caches are not asked
    #[arg(long, default_value_t = 0)]
    keys: u64,
    /// For which CPU is counted
    #[arg(long, default_value_t = 60)]
    seconds: u64,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let packages = ["weir-crowd", "weir-control"];
    println!("fleet: building {}", packages.join(", "));
    let [fleet, control] = workspace.build_release(packages)?;
    let folder = workspace.new_folder("fleet")?;
    let mut command = Command::new(fleet);
    command.current_dir(&workspace.root).arg("run");
    command.arg("--control").arg(control);
    command.arg("--folder").arg(&folder);
    for (flag, number) in [
        ("--sidecars", args.sidecars as u64),
        ("--hosts", args.hosts as u64),
        ("--keys", args.keys),
        ("--seconds", args.seconds),
    ] {
        command.args([flag, &number.to_string()]);
    }
    // weir-crowd ends what it has started; until then this waits.
    interrupt::catch()?;
    let ran = command.shown();
    println!(
        "fleet: fleet.json and every log are kept in {}",
        workspace.shown(&folder)
    );
    ran
}
