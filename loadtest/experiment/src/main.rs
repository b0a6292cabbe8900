// SPDX-License-Identifier: Apache-2.0
//! `weir-experiment NAME`: one experiment. `cargo xtask NAME` builds what it needs and calls it.

use std::process::ExitCode;

use clap::Parser;
use weir_experiment::bench::Bench;
use weir_experiment::bench::hosts::Hosts;
use weir_experiment::bench::picker::Picker;
use weir_experiment::colocation::Colocation;
use weir_experiment::driver::{self, Line};
use weir_experiment::faults::Faults;
use weir_experiment::fleet::{self, Fleet, Sidecars};
use weir_experiment::search::Search;
use weir_experiment::shared_node::{SharedNode, batch};
use weir_experiment::soak::Soak;
use weir_stage::exit;

/// Experiments on real processes; `cargo xtask` builds what they need and calls them.
#[derive(Parser)]
#[command(name = "weir-experiment", version)]
enum Command {
    /// What Weir costs beside its peers, in tables
    Bench(Line<Bench>),
    /// memcached beside batch jobs, four ways
    Colocation(Line<Colocation>),
    /// Parts of a mesh killed, frozen, cut off or lied to, under steady load
    Faults(Line<Faults>),
    /// A weir-control before a thousand EMULATED sidecars
    Fleet(Line<Fleet>),
    /// The cost of hot-function events in Elasticsearch, four ways
    Search(Line<Search>),
    /// A host that shares its node with a batch job, four ways
    SharedNode(Line<SharedNode>),
    /// The growth of every part while hosts, keys, tables, VMs and callers come and go
    Soak(Line<Soak>),
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
    let ran = match Command::parse() {
        Command::Bench(line) => driver::run(line),
        Command::Colocation(line) => driver::run(line),
        Command::Faults(line) => driver::run(line),
        Command::Fleet(line) => driver::run(line),
        Command::Search(line) => driver::run(line),
        Command::SharedNode(line) => driver::run(line),
        Command::Soak(line) => driver::run(line),
        Command::BenchHosts(hosts) => hosts.play(),
        Command::BenchPicker(picker) => picker.play(),
        Command::Sidecars(sidecars) => fleet::play(&sidecars),
        Command::Burn { threads } => batch::burn(threads),
    };
    exit::code(ran)
}
