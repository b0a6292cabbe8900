// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask bench`: what Weir costs beside its peers, in tables.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Result;
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::workspace::Workspace;
use crate::{build_filter, tools};

/// Where `--update` writes the tables.
const TABLES: &str = "loadtest/BENCH.md";

/// As weir-bench names them: a wrong name is refused before anything is built.
const PARTS: [&str; 5] = ["request", "decide", "filter", "push", "inference"];

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these parts
    #[arg(value_name = "PART", value_parser = PARTS)]
    parts: Vec<String>,
    /// Fewer and shorter rounds: a taste, with rougher figures
    #[arg(long)]
    quick: bool,
    /// Also write the tables to loadtest/BENCH.md. All parts, at full length: what is published
    #[arg(long, conflicts_with_all = ["quick", "parts"])]
    update: bool,
}

/// Programs by absolute path, and the flag of weir-bench for each.
struct Programs(Vec<(&'static str, PathBuf)>);

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let programs = Programs::build(workspace, args)?;
    let folder = workspace.new_folder("bench")?;
    let report = folder.join("report.html");
    let mut command = Command::new(workspace.target.join("release/weir-bench"));
    command.current_dir(&workspace.root).args(&args.parts);
    for (flag, path) in programs.0 {
        command.arg(flag).arg(path);
    }
    command.arg("--folder").arg(&folder);
    command.arg("--html").arg(&report);
    if args.quick {
        command.arg("--quick");
    }
    if args.update {
        command.arg("--markdown").arg(workspace.root.join(TABLES));
    }
    // weir-bench ends what it has started; until then this waits.
    interrupt::catch()?;
    command.shown()?;
    tell(workspace, args, &folder, &report);
    Ok(())
}

fn tell(workspace: &Workspace, args: &Args, folder: &Path, report: &Path) {
    if args.update {
        println!("bench: {TABLES} is up to date");
    }
    println!("bench: the report is {}", workspace.shown(report));
    println!(
        "bench: every configuration and log is kept in {}",
        workspace.shown(folder)
    );
}

impl Programs {
    /// Installs and builds what is missing.
    fn build(workspace: &Workspace, args: &Args) -> Result<Self> {
        let mut programs = vec![("--envoy", tools::install(workspace)?.envoy)];
        // They take minutes to build: only where something is measured beside them.
        if args.wants(&["request", "inference"]) {
            programs.push(("--epp", tools::build(workspace, "epp")?));
        }
        if args.wants(&["push"]) {
            programs.push(("--linear-cache", tools::build(workspace, "linear-cache")?));
        }
        programs.push(("--filter", build_filter::run(workspace)?));
        programs.push(("--no-op", build_filter::no_op(workspace)?));
        let packages = ["weir-bench", "weir-control", "weir-llm-host", "weir-replay"];
        println!("bench: building {}", packages.join(", "));
        workspace.build_release(packages)?;
        programs.push(("--release", workspace.target.join("release")));
        Ok(Self(programs))
    }
}

impl Args {
    /// Whether one of the parts is run.
    fn wants(&self, parts: &[&str]) -> bool {
        let named = |part: &&str| self.parts.iter().any(|wanted| wanted == part);
        self.parts.is_empty() || parts.iter().any(named)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_built_for_the_parts_that_measure_beside_them() {
        let args = |parts: &[&str]| Args {
            parts: parts.iter().map(|part| (*part).to_owned()).collect(),
            quick: false,
            update: false,
        };
        assert!(args(&[]).wants(&["request"]));
        assert!(args(&["decide", "request"]).wants(&["request"]));
        assert!(!args(&["decide"]).wants(&["request"]));
    }
}
