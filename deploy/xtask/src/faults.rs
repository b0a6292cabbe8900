// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask faults`: what happens when parts of a mesh die, lie or hang.

use std::process::Command;

use anyhow::Result;
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::build_filter;
use crate::tools::{self, CONSUL, PROMETHEUS};
use crate::workspace::Workspace;

const PACKAGES: [&str; 3] = ["weir-faults", "weir-control", "weir-worker"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these faults; --list names all
    names: Vec<String>,
    /// Name all faults and what is expected of each
    #[arg(long)]
    list: bool,
    /// The short form, as in the tests
    #[arg(long)]
    short: bool,
    /// Run programs as they are built for development: sooner there, slower
    #[arg(long)]
    debug: bool,
    /// Also write loadtest/faults/RESULTS.md. All faults, at full length, in release builds
    #[arg(long, conflicts_with_all = ["names", "list", "short", "debug"])]
    update: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    if args.list {
        let mut command = workspace.cargo();
        command.args(["run", "--quiet", "--package", "weir-faults", "--", "--list"]);
        return command.args(&args.names).shown();
    }
    // Before minutes of building.
    interrupt::catch()?;
    let envoy = tools::install(workspace)?.envoy;
    let consul = tools::build(workspace, CONSUL)?;
    let prometheus = tools::program(workspace, PROMETHEUS)?;
    let filter = build_filter::run(workspace)?;
    println!("faults: building {}", PACKAGES.join(", "));
    let built = workspace.build(&PACKAGES, args.debug)?;
    let folder = workspace.new_folder("faults")?;
    let mut command = Command::new(built.join(PACKAGES[0]));
    command
        .current_dir(&workspace.root)
        .args(&args.names)
        .arg("--folder")
        .arg(&folder)
        .env("WEIR_ENVOY", envoy)
        .env("WEIR_CONSUL", consul)
        .env("WEIR_PROMETHEUS", prometheus)
        .env("WEIR_FILTER_WASM", filter)
        .env("CARGO_TARGET_DIR", &workspace.target)
        .env("WEIR_BIN_DIR", built);
    if args.short {
        command.arg("--short");
    }
    if args.update {
        let file = workspace.root.join("loadtest/faults/RESULTS.md");
        command.arg("--update").arg(file);
    }
    let played = command.shown();
    println!(
        "faults: every request, every result and every log are kept in {}",
        workspace.shown(&folder)
    );
    played
}
