// SPDX-License-Identifier: Apache-2.0
//! `weir-experiment NAME`: one experiment. `cargo xtask NAME` builds what it needs and calls it.

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Arg, CommandFactory, FromArgMatches, Parser};
use weir_experiment::bench::Bench;
use weir_experiment::bench::hosts::Hosts;
use weir_experiment::bench::picker::Picker;
use weir_experiment::colocation::Colocation;
use weir_experiment::demo::Demo;
use weir_experiment::demo::agreement::Agreement;
use weir_experiment::document001::Document001;
use weir_experiment::driver::{self, Course, GIVEN, Line};
use weir_experiment::faults::Faults;
use weir_experiment::fleet::{self, Fleet, Sidecars};
use weir_experiment::load::Load;
use weir_experiment::scan::Scan;
use weir_experiment::search::Search;
use weir_experiment::shared_node::{SharedNode, batch};
use weir_experiment::soak::Soak;
use weir_experiment::static_plan::StaticPlan;
use weir_stage::exit;

/// Experiments on real processes; `cargo xtask` builds what they need and calls them.
#[derive(Parser)]
#[command(name = "weir-experiment", version)]
enum Command {
    /// The order of policies in the demo and in the simulator
    Agreement(Line<Agreement>),
    /// What Weir costs beside its peers, in tables
    Bench(Line<Bench>),
    /// memcached beside batch jobs, six ways
    Colocation(Line<Colocation>),
    /// A workload sent many ways through real Envoys
    Demo(Line<Demo>),
    /// The six experiments of document 001 and Weir's default, on real Envoys, Consul and Prometheus
    #[command(name = "document-001")]
    Document001(Line<Document001>),
    /// Parts of a mesh killed, frozen, cut off or lied to, under steady load
    Faults(Line<Faults>),
    /// A weir-control before a thousand EMULATED sidecars
    Fleet(Line<Fleet>),
    /// A scenario sent by k6 to a fleet, held against its objectives
    Load(Line<Load>),
    /// memcached by load, for each number of its threads and cores
    Scan(Line<Scan>),
    /// The cost of hot-function events in Elasticsearch, five ways
    Search(Line<Search>),
    /// A host that shares its node with a batch job, four ways
    SharedNode(Line<SharedNode>),
    /// The growth of every part while hosts, keys, tables, VMs and callers come and go
    Soak(Line<Soak>),
    /// memcached and six jobs by a written plan of three nodes, a governor each, four ways
    StaticPlan(Line<StaticPlan>),
    /// Look at the flags of an experiment and say what needs no programs
    #[command(hide = true)]
    Ask {
        /// Its name and the flags that were typed
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        line: Vec<OsString>,
    },
    /// Be the batch job of shared-node: use CPU time until killed
    #[command(hide = true)]
    Burn {
        /// How many threads
        threads: usize,
    },
    /// Play the hosts of bench that answer at once
    #[command(hide = true)]
    BenchHosts(Hosts),
    /// Be the cheapest picker of bench
    #[command(hide = true)]
    BenchPicker(Picker),
    /// Play the sidecars of fleet
    #[command(hide = true)]
    Sidecars(Sidecars),
}

fn main() -> ExitCode {
    exit::code(start(Command::parse(), Course::Whole))
}

fn start(command: Command, course: Course) -> Result<()> {
    match command {
        Command::Agreement(line) => driver::run(line, course),
        Command::Bench(line) => driver::run(line, course),
        Command::Colocation(line) => driver::run(line, course),
        Command::Demo(line) => driver::run(line, course),
        Command::Document001(line) => driver::run(line, course),
        Command::Faults(line) => driver::run(line, course),
        Command::Fleet(line) => driver::run(line, course),
        Command::Load(line) => driver::run(line, course),
        Command::Scan(line) => driver::run(line, course),
        Command::Search(line) => driver::run(line, course),
        Command::SharedNode(line) => driver::run(line, course),
        Command::Soak(line) => driver::run(line, course),
        Command::StaticPlan(line) => driver::run(line, course),
        Command::Ask { line } => start(without_given(line), Course::Asked),
        Command::BenchHosts(hosts) => hosts.play(),
        Command::BenchPicker(picker) => picker.play(),
        Command::Sidecars(sidecars) => fleet::play(&sidecars),
        Command::Burn { threads } => batch::burn(threads),
    }
}

/// The command line as it was typed, before there are the programs that `cargo xtask` adds to it.
fn without_given(line: Vec<OsString>) -> Command {
    let later = |flag: Arg| match flag.get_help_heading() == Some(GIVEN) && flag.is_required_set() {
        true => flag
            .required(false)
            .default_value("not built yet")
            .hide_default_value(true),
        false => flag,
    };
    let command = Command::command().mut_subcommands(|each| each.mut_args(later));
    let name = OsString::from("weir-experiment");
    let mut typed = command.get_matches_from([name].into_iter().chain(line));
    Command::from_arg_matches_mut(&mut typed).unwrap_or_else(|error| error.exit())
}
