// SPDX-License-Identifier: Apache-2.0
//! Every developer command of the project, as `cargo xtask COMMAND`; CI runs the same ones.
//!
//! Each command is a file or a folder of the same name, whose `run` does it; `workspace` knows where everything is,
//! `tools` fetches what is not of Cargo. COMMANDS.md lists commands and flags.

mod build_filter;
#[cfg(test)]
mod commands;
#[cfg(test)]
mod dependencies;
#[cfg(test)]
mod documents;
#[cfg(test)]
mod examples;
mod experiment;
mod experiments;
mod feeds;
mod fuzz;
mod image;
mod keep;
mod kube;
mod lab;
#[cfg(test)]
mod links;
mod mesh;
mod mutants;
mod nightly;
mod packages;
mod packaging;
mod parts;
mod probe;
#[cfg(test)]
mod quotes;
mod release;
mod remap;
mod rustc;
mod sizes;
mod test;
mod toolchain;
mod tools;
mod twice;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

const FLAGS: &str = "Experiments are bench, colocation, demo, document-001, faults, fleet, load, scan, search, shared-node, soak and static-plan: \
                     `--help` after the name of one shows its flags.";

/// Developer commands of Weir.
#[derive(Parser)]
#[command(bin_name = "cargo xtask", after_help = FLAGS)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Format, lint and test everything, after installing what that needs
    Test(test::Args),
    /// Measure what Weir costs beside its peers, and print tables
    Bench(experiment::Flags),
    /// Install the pinned external programs into .weir/tools (WEIR_TOOLS_DIR for elsewhere)
    Tools(tools::Args),
    /// Replay a workload many ways through real Envoys and print a table
    Demo(experiment::Flags),
    /// Play the six experiments of document 001 and Weir's default on real Envoys, Consul and Prometheus
    #[command(name = "document-001")]
    Document001(experiment::Flags),
    /// Simulate every policy on every workload, and print tables and a report
    Experiments(experiments::Args),
    /// Generate feeds and rules for real hosts into .weir/feeds
    Feeds(feeds::Args),
    /// Measure the rule-processing host: rules against jq and Python, orders, emulation
    Lab(lab::Args),
    /// Measure memcached by load, for each number of its threads and cores
    Scan(experiment::Flags),
    /// Measure what hot-function events cost Elasticsearch, five ways side by side
    Search(experiment::Flags),
    /// Run memcached beside batch jobs, six ways side by side; needs root and cgroups
    Colocation(experiment::Flags),
    /// Load a host that shares its node with a batch job, with the governor and without; needs root
    SharedNode(experiment::Flags),
    /// Measure a weir-control before a thousand emulated sidecars, which all come back at once
    Fleet(experiment::Flags),
    /// Look whether anything grows while hosts, keys, tables, VMs and callers come and go
    Soak(experiment::Flags),
    /// Play a written plan of three nodes on memcached and six jobs, a governor each; needs root and cgroups
    StaticPlan(experiment::Flags),
    /// Run a whole Consul mesh on this machine, in the background
    Mesh(mesh::Args),
    /// Run an API server of Kubernetes on this machine, without nodes
    Kube(kube::Args),
    /// Send a scenario by k6 to a fleet, and hold what came of it against its objectives
    Load(experiment::Flags),
    /// Harm parts of a mesh under steady load, and hold what came of it against what is expected
    Faults(experiment::Faults),
    /// Try every decoder with made-up bytes, for as long as wanted; needs a nightly compiler
    Fuzz(fuzz::Args),
    /// Change the code that decides in small ways, and list the changes that no test notices
    Mutants(mutants::Args),
    /// Make OCI images of the filter and the programs in target/image, without a daemon
    Image(image::Args),
    /// Make all that users download: archives, packages, images, bills of materials, sums, a signature
    Release(release::Args),
    /// Hold what users install against its real readers: images, manifests, units, snippets
    Packaging(packaging::Args),
    /// Measure fuel, host calls and sizes again and keep them as what tests expect
    Keep,
    /// Compile the part of the governor that runs in the kernel; needs clang 14
    Probe(probe::Args),
    /// Build weir_filter.wasm and check its size
    BuildFilter,
}

fn main() -> ExitCode {
    let Err(error) = run(Cli::parse().command) else {
        return ExitCode::SUCCESS;
    };
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("because: {cause}");
    }
    ExitCode::FAILURE
}

fn run(command: Command) -> Result<()> {
    let workspace = Workspace::find()?;
    match command {
        Command::Test(args) => test::run(&workspace, &args),
        Command::Bench(own) => experiment::run(&workspace, "bench", &own, experiment::bench),
        Command::Tools(args) => tools::run(&workspace, &args),
        Command::Demo(own) => experiment::run(&workspace, "demo", &own, experiment::demo),
        Command::Document001(own) => {
            experiment::run(&workspace, "document-001", &own, experiment::document_001)
        }
        Command::Experiments(args) => experiments::run(&workspace, &args),
        Command::Feeds(args) => feeds::run(&workspace, &args),
        Command::Lab(args) => lab::run(&workspace, &args),
        Command::Probe(args) => probe::run(&workspace, &args),
        Command::Scan(own) => experiment::run(&workspace, "scan", &own, experiment::scan),
        Command::Search(own) => experiment::run(&workspace, "search", &own, experiment::search),
        Command::Colocation(own) => {
            experiment::run(&workspace, "colocation", &own, experiment::colocation)
        }
        Command::SharedNode(own) => {
            experiment::run(&workspace, "shared-node", &own, experiment::shared_node)
        }
        Command::Fleet(own) => experiment::run(&workspace, "fleet", &own, experiment::fleet),
        Command::Soak(own) => experiment::run(&workspace, "soak", &own, experiment::soak),
        // The same programs.
        Command::StaticPlan(own) => {
            experiment::run(&workspace, "static-plan", &own, experiment::colocation)
        }
        Command::Mesh(args) => mesh::run(&workspace, &args),
        Command::Kube(args) => kube::run(&workspace, &args),
        Command::Load(own) => experiment::run(&workspace, "load", &own, experiment::load),
        Command::Faults(args) => experiment::run(&workspace, "faults", &args.own, |launch| {
            experiment::faults(launch, args.debug)
        }),
        Command::Fuzz(args) => fuzz::run(&workspace, &args),
        Command::Mutants(args) => mutants::run(&workspace, &args),
        Command::Image(args) => image::run(&workspace, &args),
        Command::Release(args) => release::run(&workspace, &args),
        Command::Packaging(args) => packaging::run(&workspace, &args),
        Command::Keep => keep::run(&workspace),
        Command::BuildFilter => build_filter::run(&workspace).map(drop),
    }
}
