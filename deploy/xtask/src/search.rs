// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask search`: what hot-function events cost Elasticsearch, in tables.

use std::process::Command;

use anyhow::Result;
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::tools::{self, EVENTS_AGENT, SEARCH_NODE};
use crate::workspace::Workspace;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Fewer and shorter rounds over a smaller index: a taste, with rougher figures
    #[arg(long)]
    quick: bool,
    /// Of documents, queries and the order of turns
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let agent = tools::build(workspace, EVENTS_AGENT)?;
    let node = tools::build(workspace, SEARCH_NODE)?;
    let packages = ["weir-search", "weir-governor"];
    println!("search: building {}", packages.join(", "));
    let [search, governor] = workspace.build_release(packages)?;
    let folder = workspace.new_folder("search")?;
    let mut command = Command::new(search);
    command
        .current_dir(&workspace.root)
        .args(["--counts", "loadtest/traces/cloudsuite_term_counts.csv"])
        .args(["--seed", &args.seed.to_string()]);
    for (flag, path) in [
        ("--node", &node),
        ("--agent", &agent),
        ("--governor", &governor),
        ("--cache", &workspace.cache().join("search")),
        ("--folder", &folder),
    ] {
        command.arg(flag).arg(path);
    }
    if args.quick {
        command.arg("--quick");
    }
    // weir-search ends what it has started; until then this waits.
    interrupt::catch()?;
    command.shown()?;
    println!(
        "search: every round and every log is kept in {}",
        workspace.shown(&folder)
    );
    Ok(())
}
