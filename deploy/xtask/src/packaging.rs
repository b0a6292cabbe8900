// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask packaging`: holds what users install against its real readers. `cargo xtask test` leaves out those that
//! take minutes to build.

use std::path::PathBuf;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::build_filter;
use crate::tools;
use crate::workspace::Workspace;
use weir_stage::command::Run;

/// A registry and its client; the builder of manifests.
const READERS: [&str; 2] = ["crane", "kustomize"];
/// The API server's validation, three CPU minutes to build, and schemas for it.
const VALIDATION: [&str; 2] = ["kubectl-validate", tools::CRDS];
/// A control plane, minutes to build, for one test.
const ENVOY_GATEWAY: &str = "envoy-gateway";

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Also send requests through a real Envoy Gateway, after building it for minutes
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    match args.all {
        true => all_tests(workspace)?.shown(),
        false => envoy_tests(workspace)?.shown(),
    }
}

/// All of its tests but those of a release and of Helm.
pub(crate) fn all_tests(workspace: &Workspace) -> Result<Command> {
    let mut command = envoy_tests(workspace)?;
    let gateway = tools::build(workspace, ENVOY_GATEWAY)?;
    command.env(tools::variable(ENVOY_GATEWAY), gateway);
    Ok(command)
}

fn envoy_tests(workspace: &Workspace) -> Result<Command> {
    let envoy = tools::install(workspace)?.envoy;
    let filter = build_filter::run(workspace)?;
    let mut command = tests(workspace)?;
    command
        .env("WEIR_ENVOY", envoy)
        .env("WEIR_FILTER_WASM", filter);
    Ok(command)
}

/// Its tests, with the programs that are installed, and the readers and the validation that can be had.
fn tests(workspace: &Workspace) -> Result<Command> {
    workspace
        .cargo()
        .args(["build", "--bins"])
        .args(["--package", "weir-control", "--package", "weir-governor"])
        .shown()?;
    let mut command = workspace.cargo();
    command
        .args(["test", "--package", "weir-packaging"])
        .env("WEIR_BIN_DIR", workspace.target.join("debug"));
    let validation = built(workspace, &VALIDATION);
    for (name, path) in readers(workspace).into_iter().chain(validation) {
        command.env(tools::variable(name), path);
    }
    Ok(command)
}

/// Those that can be had; of the others it is said why not.
pub(crate) fn readers(workspace: &Workspace) -> Vec<(&'static str, PathBuf)> {
    built(workspace, &READERS)
}

fn built(workspace: &Workspace, names: &[&'static str]) -> Vec<(&'static str, PathBuf)> {
    let had = names.iter().map(|name| {
        tools::build(workspace, name)
            .map(|path| (*name, path))
            .inspect_err(|error| println!("THE TESTS THAT NEED {name} ARE SKIPPED: {error:#}"))
    });
    had.filter_map(Result::ok).collect()
}

/// Whether nothing is missing.
pub(crate) fn are_all(readers: &[(&'static str, PathBuf)]) -> bool {
    readers.len() == READERS.len()
}

/// Tests by their names, of which there must be some.
pub(crate) fn played(mut command: Command) -> Result<()> {
    // What failed, and why, is in the output.
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("starting {command:?}"))?;
    let said = String::from_utf8_lossy(&output.stdout);
    print!("{said}");
    ensure!(
        output.status.success(),
        "tests ended with {}",
        output.status
    );
    ensure!(
        said.contains("test result: ok.") && !said.contains(" 0 passed"),
        "no test was played"
    );
    Ok(())
}
