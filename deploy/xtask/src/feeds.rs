// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask feeds`: projects, items and rules for real hosts, made by `weir-feeds`.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;

use crate::workspace::Workspace;
use weir_stage::command::Run;

const PACKAGE: &str = "weir-feeds";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Folder to write [default: .weir/feeds/default]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Given to weir-feeds as they are; `-- --help` lists them
    #[arg(last = true)]
    args: Vec<OsString>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let [program] = workspace.build_release([PACKAGE])?;
    let out = match &args.out {
        Some(out) => out.clone(),
        None => workspace.cache().join("feeds/default"),
    };
    let help = args.args.iter().any(|arg| arg == "--help" || arg == "-h");
    Command::new(program)
        .arg("--out")
        .arg(&out)
        .args(&args.args)
        .shown()?;
    if !help {
        println!("\n{}", next(workspace, &out));
    }
    Ok(())
}

/// What one may want to do with them.
fn next(workspace: &Workspace, out: &Path) -> String {
    let run = "cargo run --release --package";
    let folder = workspace.shown(out);
    format!(
        "They are in {folder}. A host that serves them, a workload, and its replay:\n  \
         {run} weir-worker -- --store {folder} --listen 127.0.0.1:9001\n  \
         {run} weir-replay -- workload feeds --feeds {folder} --rate 5 --duration 60s --out workload.ndjson\n  \
         {run} weir-replay -- run --workload workload.ndjson --bodies {folder} --target 127.0.0.1:9001\n\
         All ways of choosing a host, with feeds of their own:\n  \
         cargo xtask demo --real"
    )
}
