// SPDX-License-Identifier: Apache-2.0
//! The commands that start an experiment of `loadtest/experiment`: its programs are fetched and built, and its flags
//! are handed on as they were typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::build_filter;
use crate::tools::{self, BATCH, CONSUL, EVENTS_AGENT, MEMCACHED, PROMETHEUS, SEARCH_NODE};
use crate::workspace::Workspace;

const PACKAGE: &str = "weir-experiment";
const DEBUG: &str = "--debug";
/// Of the bench, as it names them: a wrong name is refused before anything is built.
const PARTS: [&str; 5] = ["request", "decide", "filter", "push", "inference"];

#[derive(clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Flags {
    /// Flags of the experiment: `--help` shows them, and so does loadtest/experiment/COMMANDS.md
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    flags: Vec<OsString>,
}

#[derive(clap::Args)]
pub(crate) struct Faults {
    /// Run programs as they are built for development: sooner there, slower
    #[arg(long)]
    pub(crate) debug: bool,
    #[command(flatten)]
    pub(crate) own: Flags,
}

impl Flags {
    fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|own| own == flag)
    }

    /// Parts of the bench that are named.
    fn parts(&self) -> Result<Vec<&str>> {
        let words = self.flags.iter().filter_map(|flag| flag.to_str());
        let parts: Vec<_> = words.filter(|word| !word.starts_with('-')).collect();
        let wrong = parts.iter().find(|part| !PARTS.contains(part));
        ensure!(
            wrong.is_none(),
            "there is no part {wrong:?}; there are {PARTS:?}"
        );
        Ok(parts)
    }

    /// The experiment only says something, and needs no programs.
    fn only_ask(&self) -> bool {
        ["--help", "-h", "--list"].iter().any(|flag| self.has(flag))
    }
}

/// An experiment about to be started.
pub(crate) struct Launch<'a> {
    workspace: &'a Workspace,
    /// As the command and the experiment are called.
    name: &'static str,
    /// As they were typed.
    own: &'a Flags,
    /// Programs and files that it is told of, by flag.
    flags: Vec<(String, PathBuf)>,
    /// The same by variable of its environment.
    environment: Vec<(&'static str, PathBuf)>,
    /// Packages whose programs it finds in `WEIR_BIN_DIR`.
    beside: &'static [&'static str],
    /// Of the packages.
    features: &'static [&'static str],
    /// Built as for development.
    debug: bool,
}

/// Starts an experiment, or has it answer a question about itself.
pub(crate) fn run(
    workspace: &Workspace,
    name: &'static str,
    own: &Flags,
    start: impl FnOnce(Launch<'_>) -> Result<()>,
) -> Result<()> {
    if own.only_ask() {
        let mut command = workspace.cargo();
        command.args(["run", "--quiet", "--package", PACKAGE, "--", name]);
        return command.args(&own.flags).shown();
    }
    start(Launch {
        workspace,
        name,
        own,
        flags: Vec::new(),
        environment: Vec::new(),
        beside: &[],
        features: &[],
        debug: false,
    })
}

pub(crate) fn bench(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
    let parts = launch.own.parts()?;
    launch.tell("envoy", tools::install(workspace)?.envoy);
    // They take minutes to build: only where something is measured beside them.
    if wanted(&parts, &["request", "inference"]) {
        launch.tell("epp", tools::build(workspace, "epp")?);
    }
    if wanted(&parts, &["push"]) {
        launch.tell("linear-cache", tools::build(workspace, "linear-cache")?);
    }
    launch.tell("filter", build_filter::run(workspace)?);
    launch.tell("no-op", build_filter::no_op(workspace)?);
    launch.features = &["weir-experiment/harness"];
    let programs = [
        ("control", "weir-control"),
        ("llm-host", "weir-llm-host"),
        ("replay", "weir-replay"),
    ];
    launch.start(
        &programs,
        "the tables, the report, every configuration and every log are",
    )
}

/// Whether one of these parts of the bench is run: all are if none is named.
fn wanted(named: &[&str], parts: &[&str]) -> bool {
    named.is_empty() || named.iter().any(|part| parts.contains(part))
}

pub(crate) fn search(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
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

pub(crate) fn colocation(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
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

pub(crate) fn shared_node(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
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

pub(crate) fn fleet(launch: Launch<'_>) -> Result<()> {
    launch.start(
        &[("control", "weir-control")],
        "fleet.json and every log are",
    )
}

pub(crate) fn soak(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
    launch.tell("envoy", tools::install(workspace)?.envoy);
    launch.tell("filter", build_filter::crashing(workspace)?);
    launch.start(
        &[("control", "weir-control"), ("worker", "weir-worker")],
        "the report, every sample and every log are",
    )
}

pub(crate) fn faults(mut launch: Launch<'_>, debug: bool) -> Result<()> {
    let workspace = launch.workspace;
    // Behind the name of a fault it is one of the experiment's flags.
    launch.debug = debug || launch.own.has(DEBUG);
    ensure!(
        !launch.debug || !launch.own.has("--update"),
        "RESULTS.md is written of release builds alone: --update and {DEBUG} cannot be used together"
    );
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

impl Launch<'_> {
    fn tell(&mut self, flag: &str, file: PathBuf) {
        self.flags.push((format!("--{flag}"), file));
    }

    /// Builds it with these programs, by flag and package, runs it to its end, and says what it has `kept`.
    fn start(mut self, programs: &[(&str, &str)], kept: &str) -> Result<()> {
        let (workspace, name) = (self.workspace, self.name);
        let mut packages = [&[PACKAGE], self.beside].concat();
        packages.extend(programs.iter().map(|(_, package)| package));
        println!("{name}: building {}", packages.join(", "));
        let built = workspace.build_with(&packages, self.debug, self.features)?;
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
        // The build is not the experiment's matter.
        command.args(self.own.flags.iter().filter(|flag| *flag != DEBUG));
        // The experiment ends what it has started; until then this waits.
        interrupt::catch()?;
        let ran = command.shown();
        println!("{name}: {kept} kept in {}", workspace.shown(&folder));
        ran
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_are_built_for_the_parts_that_measure_beside_them() {
        assert!(wanted(&[], &["request"]));
        assert!(wanted(&["decide", "request"], &["request"]));
        assert!(!wanted(&["decide"], &["request"]));
    }

    #[test]
    fn a_part_that_is_none_is_refused() {
        let flags = |words: [&str; 2]| Flags {
            flags: words.map(OsString::from).to_vec(),
        };
        assert_eq!(flags(["--quick", "push"]).parts().unwrap(), ["push"]);
        assert!(flags(["push", "pull"]).parts().is_err());
    }
}
