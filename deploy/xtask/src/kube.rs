// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask kube`: an API server of Kubernetes on loopback, with its store and without nodes.

use std::path::PathBuf;
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::Result;
use clap::{Args as Arguments, Subcommand};
use weir_stage::interrupt;
use weir_stage::kube::Kube;

use crate::build_filter;
use crate::packaging;
use crate::tools::{self, CRDS, ETCD, HELM, K6, KUBE_APISERVER, Temporary};
use crate::workspace::Workspace;

#[derive(Arguments)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Build both programs, start them, print the path of an administrator's kubeconfig, and go on until Ctrl-C
    Up,
}

/// Between two looks whether both live.
const LOOK_EVERY: Duration = Duration::from_millis(200);

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let What::Up = args.what;
    interrupt::catch()?;
    let [etcd, api_server] = build(workspace)?;
    let folder = Temporary::new(&workspace.cache(), "kube")?;
    let begun = Instant::now();
    let mut kube = Kube::start(&etcd, &api_server, &folder.0)?;
    println!(
        "kube: up in {:.1} s; logs are beside the kubeconfig, and all of it goes at Ctrl-C",
        begun.elapsed().as_secs_f32()
    );
    println!("{}", kube.kubeconfig().display());
    while interrupt::check().is_ok() {
        kube.check()?;
        sleep(LOOK_EVERY);
    }
    Ok(())
}

fn build(workspace: &Workspace) -> Result<[PathBuf; 2]> {
    Ok([
        tools::build(workspace, ETCD)?,
        tools::build(workspace, KUBE_APISERVER)?,
    ])
}

/// Tests against it, of the chart by Helm, of manifests by the API server's validation, and of requests through Envoy
/// Gateway: they are skipped where nobody names the programs, as all of them take minutes to build.
pub(crate) fn test(workspace: &Workspace) -> Result<()> {
    let [etcd, api_server] = build(workspace)?;
    let helm = tools::build(workspace, HELM)?;
    let crds = tools::build(workspace, CRDS)?;
    let k6 = tools::build(workspace, K6)?;
    let envoy = tools::install(workspace)?.envoy;
    let filter = build_filter::run(workspace)?;
    let mut command = workspace.cargo();
    command
        .args(["test", "--package", "weir-control", "--test", "kubernetes"])
        .env(tools::variable(ETCD), etcd)
        .env(tools::variable(KUBE_APISERVER), api_server)
        .env(tools::variable(HELM), &helm)
        .env(tools::variable(CRDS), crds)
        .env(tools::variable(K6), k6)
        .env("WEIR_ENVOY", envoy)
        .env("WEIR_FILTER_WASM", filter);
    packaging::played(command)?;
    let mut command = packaging::all_tests(workspace)?;
    command.env(tools::variable(HELM), &helm);
    packaging::played(command)
}
