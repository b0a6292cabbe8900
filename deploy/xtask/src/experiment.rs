// SPDX-License-Identifier: Apache-2.0
//! The commands that start an experiment of `loadtest/experiment`: what each needs is fetched and built, and its
//! flags are handed on as they were typed.

use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::build_filter;
use crate::tools::{self, BATCH, EVENTS_AGENT, MEMCACHED, SEARCH_NODE};
use crate::workspace::Workspace;

const PACKAGE: &str = "weir-experiment";

#[derive(clap::Args)]
pub(crate) struct Search {
    /// Fewer and shorter rounds over a smaller index: a taste, with rougher figures
    #[arg(long)]
    quick: bool,
    /// Of documents, queries and the order of turns
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

#[derive(clap::Args)]
pub(crate) struct Colocation {
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

#[derive(clap::Args)]
pub(crate) struct SharedNode {
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

/// An experiment about to be started.
struct Launch<'a> {
    workspace: &'a Workspace,
    /// As the command and the experiment are called.
    name: &'static str,
    /// Programs and files that it is told of, by flag.
    flags: Vec<(String, PathBuf)>,
}

pub(crate) fn search(workspace: &Workspace) -> Result<()> {
    let mut launch = Launch::new(workspace, "search");
    launch.tell("agent", tools::build(workspace, EVENTS_AGENT)?);
    launch.tell("node", tools::build(workspace, SEARCH_NODE)?);
    launch.tell("cache", workspace.cache().join("search"));
    launch.tell(
        "counts",
        workspace
            .root
            .join("loadtest/traces/cloudsuite_term_counts.csv"),
    );
    launch.start(
        &[("governor", "weir-governor")],
        "the table, every round and every log are",
    )
}

pub(crate) fn colocation(workspace: &Workspace) -> Result<()> {
    let mut launch = Launch::new(workspace, "colocation");
    for name in [MEMCACHED].into_iter().chain(BATCH) {
        launch.tell(name, tools::program(workspace, name)?);
    }
    launch.start(
        &[
            ("load", "weir-memcached-load"),
            ("governor", "weir-governor"),
        ],
        "the table, the report, every round and every log are",
    )
}

pub(crate) fn shared_node(workspace: &Workspace) -> Result<()> {
    let mut launch = Launch::new(workspace, "shared-node");
    launch.tell("envoy", tools::install(workspace)?.envoy);
    launch.tell("filter", build_filter::run(workspace)?);
    let programs = [
        ("control", "weir-control"),
        ("governor", "weir-governor"),
        ("worker", "weir-worker"),
        ("replay", "weir-replay"),
    ];
    launch.start(
        &programs,
        "the table, the report, every round, every request and every log are",
    )
}

impl<'a> Launch<'a> {
    fn new(workspace: &'a Workspace, name: &'static str) -> Self {
        Self {
            workspace,
            name,
            flags: Vec::new(),
        }
    }

    fn tell(&mut self, flag: &str, file: PathBuf) {
        self.flags.push((format!("--{flag}"), file));
    }

    /// Builds it with these programs, by flag and package, runs it to its end, and says what it has `kept`.
    fn start(mut self, programs: &[(&str, &str)], kept: &str) -> Result<()> {
        let (workspace, name) = (self.workspace, self.name);
        let mut packages = vec![PACKAGE];
        packages.extend(programs.iter().map(|(_, package)| package));
        println!("{name}: building {}", packages.join(", "));
        let built = workspace.build(&packages, false)?;
        for (flag, package) in programs {
            self.tell(flag, built.join(package));
        }
        let folder = workspace.new_folder(name)?;
        self.tell("folder", folder.clone());
        let mut command = Command::new(built.join(PACKAGE));
        command.current_dir(&workspace.root).arg(name);
        for (flag, file) in self.flags {
            command.arg(flag).arg(file);
        }
        // The program, then the command's name.
        command.args(env::args_os().skip(2));
        // The experiment ends what it has started; until then this waits.
        interrupt::catch()?;
        let ran = command.shown();
        println!("{name}: {kept} kept in {}", workspace.shown(&folder));
        ran
    }
}
