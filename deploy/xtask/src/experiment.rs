// SPDX-License-Identifier: Apache-2.0
//! The commands that start an experiment of `loadtest/experiment`: its programs are fetched and built, and its flags
//! are handed on as they were typed.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Command;
use std::thread;

use anyhow::{Result, anyhow, ensure};
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::build_filter;
use crate::tools::{self, BATCH, CONSUL, EVENTS_AGENT, K6, MEMCACHED, PROMETHEUS, SEARCH_NODE};
use crate::workspace::Workspace;

const PACKAGE: &str = "weir-experiment";
const DEBUG: &str = "--debug";
/// Parts of the bench that measure beside the inference gateway's picker.
const EPP: [&str; 7] = [
    "request",
    "inference",
    "inference-loads",
    "inference-killed",
    "inference-priorities",
    "inference-keyless",
    "inference-callers",
];
/// Programs by flag and package.
const CONTROL: (&str, &str) = ("control", "weir-control");
const GOVERNOR: (&str, &str) = ("governor", "weir-governor");
const REPLAY: (&str, &str) = ("replay", "weir-replay");
const WORKER: (&str, &str) = ("worker", "weir-worker");

#[derive(clap::Args, Default)]
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

    /// The flag with this value, in either way of writing it.
    fn has_value(&self, flag: &str, value: &str) -> bool {
        let joined = format!("{flag}={value}");
        let mut pairs = self.flags.windows(2);
        self.has(&joined) || pairs.any(|pair| pair[0] == flag && pair[1] == value)
    }

    /// Parts of the bench that are named.
    fn parts(&self) -> Vec<&str> {
        let words = self.flags.iter().filter_map(|flag| flag.to_str());
        words.filter(|word| !word.starts_with('-')).collect()
    }

    /// The experiment only says something, and needs no programs.
    fn only_ask(&self) -> bool {
        let asking = ["--help", "-h", "--list", "--report"];
        let begins = |own: &OsString| own.to_string_lossy().starts_with("--report=");
        asking.iter().any(|flag| self.has(flag)) || self.flags.iter().any(begins)
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
    /// Of `cargo build`.
    features: &'static [&'static str],
    /// Built as for development.
    debug: bool,
    /// The folder of programs.
    built: PathBuf,
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
        command.args(["run", "--quiet", "--package", PACKAGE, "--", "ask", name]);
        return command.args(&own.flags).shown();
    }
    start(Launch {
        workspace,
        name,
        own,
        flags: Vec::new(),
        environment: Vec::new(),
        features: &[],
        debug: false,
        built: workspace.target.join("debug"),
    })
}

pub(crate) fn demo(mut launch: Launch<'_>) -> Result<()> {
    launch.build_replayed()?;
    launch.start("the table, the report, every request, every configuration and every log are")
}

pub(crate) fn document_001(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
    launch.build_replayed()?;
    launch.tell(CONSUL, tools::build(workspace, CONSUL)?);
    launch.tell(PROMETHEUS, tools::program(workspace, PROMETHEUS)?);
    launch.start("the tables, the report, every request, every configuration and every log are")
}

/// The step of the tests that holds the simulator against the demo. Nothing is built that other steps have built.
pub(crate) fn agreement(mut launch: Launch<'_>) -> Result<()> {
    launch.workspace.build_programs()?;
    for (flag, package) in [CONTROL, WORKER, REPLAY, ("simulator", "weir-sim")] {
        launch.tell(flag, launch.built.join(package));
    }
    let filter = build_filter::run(launch.workspace)?;
    launch.tell_sidecar(filter)?;
    launch.start("both tables, every request and every log are")
}

pub(crate) fn load(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
    launch.build_with_sidecar(&[CONTROL, WORKER])?;
    launch.tell(K6, tools::build(workspace, K6)?);
    launch.tell_consul_for_mesh()?;
    launch.start("the table, the report, k6's own summaries, every configuration and every log are")
}

pub(crate) fn bench(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
    let parts = launch.own.parts();
    launch.features = &["--features", "weir-experiment/harness"];
    let llm_host = ("llm-host", "weir-llm-host");
    launch.build_with_sidecar(&[CONTROL, llm_host, REPLAY])?;
    launch.tell("no-op", build_filter::no_op(workspace)?);
    launch.tell("native", build_filter::native(workspace)?);
    launch.tell("native-no-op", build_filter::native_no_op(workspace)?);
    // They take minutes to build: only where something is measured beside them.
    if wanted(&parts, &EPP) {
        launch.tell("epp", tools::build(workspace, "epp")?);
    }
    if wanted(&parts, &["push"]) {
        launch.tell("linear-cache", tools::build(workspace, "linear-cache")?);
    }
    launch.start("the tables, the report, every configuration and every log are")
}

/// Whether one of these parts of the bench is run: all are if none is named.
fn wanted(named: &[&str], parts: &[&str]) -> bool {
    named.is_empty() || named.iter().any(|part| parts.contains(part))
}

pub(crate) fn search(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
    launch.build(&[GOVERNOR], &[])?;
    launch.tell("agent", tools::build(workspace, EVENTS_AGENT)?);
    launch.tell("node", tools::build(workspace, SEARCH_NODE)?);
    launch.tell("cache", workspace.cache().join("search"));
    launch.tell(
        "counts",
        workspace
            .root
            .join("loadtest/traces/cloudsuite_term_counts.csv"),
    );
    launch.start("the table, every round and every log are")
}

pub(crate) fn scan(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
    launch.build(&[("load", "weir-memcached-load")], &[])?;
    launch.tell(MEMCACHED, tools::program(workspace, MEMCACHED)?);
    launch.start("the tables, the report, every rate and every log are")
}

pub(crate) fn colocation(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
    launch.build(&[("load", "weir-memcached-load"), GOVERNOR], &[])?;
    for name in [MEMCACHED].into_iter().chain(BATCH) {
        launch.tell(name, tools::program(workspace, name)?);
    }
    launch.start("the table, the report, every round and every log are")
}

pub(crate) fn shared_node(mut launch: Launch<'_>) -> Result<()> {
    launch.build_with_sidecar(&[CONTROL, GOVERNOR, WORKER, REPLAY])?;
    launch.tell_consul_for_mesh()?;
    launch.start("the table, the report, every round, every request and every log are")
}

pub(crate) fn fleet(mut launch: Launch<'_>) -> Result<()> {
    launch.build(&[CONTROL], &[])?;
    launch.start("fleet.json and every log are")
}

pub(crate) fn soak(mut launch: Launch<'_>) -> Result<()> {
    let workspace = launch.workspace;
    launch.build(&[CONTROL, WORKER], &[])?;
    launch.tell("envoy", tools::install(workspace)?.envoy);
    launch.tell("filter", build_filter::crashing(workspace)?);
    launch.start("the report, every sample and every log are")
}

pub(crate) fn faults(mut launch: Launch<'_>, debug: bool) -> Result<()> {
    let workspace = launch.workspace;
    // Behind the name of a fault it is one of the experiment's flags.
    launch.debug = debug || launch.own.has(DEBUG);
    ensure!(
        !launch.debug || !launch.own.has("--update"),
        "RESULTS.md is written of release builds alone: --update and {DEBUG} cannot be used together"
    );
    launch.build(&[], &["weir-control", "weir-worker"])?;
    launch.environment = vec![
        ("WEIR_ENVOY", tools::install(workspace)?.envoy),
        ("WEIR_CONSUL", tools::build(workspace, CONSUL)?),
        ("WEIR_PROMETHEUS", tools::program(workspace, PROMETHEUS)?),
        ("WEIR_FILTER_WASM", build_filter::run(workspace)?),
        ("CARGO_TARGET_DIR", workspace.target.clone()),
    ];
    launch.start("every request, every result and every log are")
}

impl Launch<'_> {
    fn tell(&mut self, flag: &str, file: PathBuf) {
        self.flags.push((format!("--{flag}"), file));
    }

    /// Tells it of Consul, which takes minutes to build, where it is asked for a mesh.
    fn tell_consul_for_mesh(&mut self) -> Result<()> {
        if self.own.has_value("--against", "mesh") {
            self.tell(CONSUL, tools::build(self.workspace, CONSUL)?);
        }
        Ok(())
    }

    /// Tells it of Envoy and the filter.
    fn tell_sidecar(&mut self, filter: PathBuf) -> Result<()> {
        self.tell("envoy", tools::install(self.workspace)?.envoy);
        self.tell("filter", filter);
        Ok(())
    }

    /// What a workload is sent through, and hosts that work or are emulated.
    fn build_replayed(&mut self) -> Result<()> {
        let real = self.own.has("--real");
        self.debug = !real && self.own.has("--quick");
        let mut programs = vec![CONTROL, WORKER, REPLAY];
        if real {
            programs.push(("feeds", "weir-feeds"));
        } else {
            // The feature `rules` of hosts, which are emulated here.
            self.features = &["--no-default-features"];
        }
        self.build_with_sidecar(&programs)
    }

    /// As [`Self::build`], with the filter at the same time: its last minute is one core's. Tells it of Envoy, too.
    fn build_with_sidecar(&mut self, programs: &[(&str, &str)]) -> Result<()> {
        let workspace = self.workspace;
        let filter = thread::scope(|scope| {
            let filter = scope.spawn(|| build_filter::run(workspace));
            self.build(programs, &[])?;
            // A panic has told of itself.
            filter.join().map_err(|_| anyhow!("building the filter"))?
        })?;
        self.tell_sidecar(filter)
    }

    /// Builds it with the programs that it is told of, by flag and package, and those that it finds `beside` it.
    /// Flags that it does not take are refused then, before anything is fetched: all are built at once, as each other
    /// choice of packages is a build of its own.
    fn build(&mut self, programs: &[(&str, &str)], beside: &[&str]) -> Result<()> {
        let mut packages = [&[PACKAGE], beside].concat();
        packages.extend(programs.iter().map(|(_, package)| package));
        println!("{}: building {}", self.name, packages.join(", "));
        let workspace = self.workspace;
        self.built = workspace.build_with(&packages, self.debug, self.features)?;
        for (flag, package) in programs {
            self.tell(flag, self.built.join(package));
        }
        let mut ask = self.command();
        ask.args(["ask", self.name]).args(self.typed()).shown()
    }

    /// Runs it to its end, and says what it has `kept`.
    fn start(self, kept: &str) -> Result<()> {
        let (workspace, name) = (self.workspace, self.name);
        let folder = workspace.new_folder(name)?;
        let mut command = self.command();
        command.arg(name).arg("--folder").arg(&folder);
        for (flag, file) in &self.flags {
            command.arg(flag).arg(file);
        }
        command.args(self.typed());
        command.envs(self.environment.iter().cloned());
        command.env("WEIR_BIN_DIR", &self.built);
        // The experiment ends what it has started; until then this waits.
        interrupt::catch()?;
        let ran = command.shown();
        println!("{name}: {kept} kept in {}", workspace.shown(&folder));
        ran
    }

    fn command(&self) -> Command {
        let mut command = Command::new(self.built.join(PACKAGE));
        command.current_dir(&self.workspace.root);
        command
    }

    /// The build is not the experiment's matter.
    fn typed(&self) -> impl Iterator<Item = &OsString> {
        self.own.flags.iter().filter(|flag| *flag != DEBUG)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_are_found_in_either_way_of_writing_them() {
        let flags = |typed: &str| Flags {
            flags: typed.split_whitespace().map(Into::into).collect(),
        };
        for typed in ["smoke --against mesh", "--against=mesh smoke"] {
            assert!(flags(typed).has_value("--against", "mesh"), "{typed}");
        }
        assert!(!flags("mesh --against static").has_value("--against", "mesh"));
        for typed in ["--report folder", "--report=folder", "-h"] {
            assert!(flags(typed).only_ask(), "{typed}");
        }
        assert!(!flags("--quick --way list").only_ask());
    }

    #[test]
    fn peers_are_built_for_the_parts_that_measure_beside_them() {
        assert!(wanted(&[], &["request"]));
        assert!(wanted(&["decide", "request"], &["request"]));
        assert!(!wanted(&["decide"], &["request"]));
    }

    #[test]
    fn parts_of_the_bench_are_its_words() {
        let flags = ["--quick", "push"].map(OsString::from).to_vec();
        assert_eq!(Flags { flags }.parts(), ["push"]);
    }
}
