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
use crate::tools::{self, BATCH, CONSUL, EVENTS_AGENT, MEMCACHED, PROMETHEUS, SEARCH_NODE};
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

#[derive(clap::Args)]
pub(crate) struct Fleet {
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

#[derive(clap::Args)]
pub(crate) struct Soak {
    /// How long; the first half warms up, and less than 10 minutes are not judged
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=1440))]
    minutes: u64,
}

#[derive(clap::Args)]
pub(crate) struct Faults {
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
    /// Also write loadtest/experiment/src/faults/RESULTS.md. All faults, at full length, in release builds
    #[arg(long, conflicts_with_all = ["names", "list", "short", "debug"])]
    update: bool,
}

/// An experiment about to be started.
struct Launch<'a> {
    workspace: &'a Workspace,
    /// As the command and the experiment are called.
    name: &'static str,
    /// Programs and files that it is told of, by flag.
    flags: Vec<(String, PathBuf)>,
    /// The same by variable of its environment.
    environment: Vec<(&'static str, PathBuf)>,
    /// Packages whose programs it finds in `WEIR_BIN_DIR`.
    beside: &'static [&'static str],
    /// Built as for development.
    debug: bool,
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

pub(crate) fn fleet(workspace: &Workspace) -> Result<()> {
    let launch = Launch::new(workspace, "fleet");
    launch.start(
        &[("control", "weir-control")],
        "fleet.json and every log are",
    )
}

pub(crate) fn soak(workspace: &Workspace) -> Result<()> {
    let mut launch = Launch::new(workspace, "soak");
    launch.tell("envoy", tools::install(workspace)?.envoy);
    launch.tell("filter", build_filter::crashing(workspace)?);
    launch.start(
        &[("control", "weir-control"), ("worker", "weir-worker")],
        "the report, every sample and every log are",
    )
}

pub(crate) fn faults(workspace: &Workspace, args: &Faults) -> Result<()> {
    if args.list {
        let mut command = workspace.cargo();
        command.args([
            "run",
            "--quiet",
            "--package",
            PACKAGE,
            "--",
            "faults",
            "--list",
        ]);
        return command.args(&args.names).shown();
    }
    let mut launch = Launch::new(workspace, "faults");
    launch.debug = args.debug;
    launch.environment = vec![
        ("WEIR_ENVOY", tools::install(workspace)?.envoy),
        ("WEIR_CONSUL", tools::build(workspace, CONSUL)?),
        ("WEIR_PROMETHEUS", tools::program(workspace, PROMETHEUS)?),
        ("WEIR_FILTER_WASM", build_filter::run(workspace)?),
        ("CARGO_TARGET_DIR", workspace.target.clone()),
    ];
    launch.beside = &["weir-control", "weir-worker"];
    launch.start(&[], "every request, every result and every log are")
}

impl<'a> Launch<'a> {
    fn new(workspace: &'a Workspace, name: &'static str) -> Self {
        Self {
            workspace,
            name,
            flags: Vec::new(),
            environment: Vec::new(),
            beside: &[],
            debug: false,
        }
    }

    fn tell(&mut self, flag: &str, file: PathBuf) {
        self.flags.push((format!("--{flag}"), file));
    }

    /// Builds it with these programs, by flag and package, runs it to its end, and says what it has `kept`.
    fn start(mut self, programs: &[(&str, &str)], kept: &str) -> Result<()> {
        let (workspace, name) = (self.workspace, self.name);
        let mut packages = [&[PACKAGE], self.beside].concat();
        packages.extend(programs.iter().map(|(_, package)| package));
        println!("{name}: building {}", packages.join(", "));
        let built = workspace.build(&packages, self.debug)?;
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
        command.envs(self.environment).env("WEIR_BIN_DIR", built);
        // The program, then the command's name. How it is built is not the experiment's matter.
        command.args(env::args_os().skip(2).filter(|flag| flag != "--debug"));
        // The experiment ends what it has started; until then this waits.
        interrupt::catch()?;
        let ran = command.shown();
        println!("{name}: {kept} kept in {}", workspace.shown(&folder));
        ran
    }
}
