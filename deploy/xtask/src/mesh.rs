// SPDX-License-Identifier: Apache-2.0
//! `cargo xtask mesh`: a whole Consul mesh on this machine, in the background.

mod programs;
mod status;

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args as Arguments, Subcommand};
use weir_mesh::{Description, Plan, background};
use weir_stage::interrupt;

use crate::workspace::Workspace;

#[derive(Arguments)]
pub(crate) struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// Build what is needed, start the mesh in the background, return when requests go through
    Up(Up),
    /// Processes, their state and cost, and those that have died
    Status,
    /// End everything, and verify that nothing is left
    Down,
}

#[derive(Arguments)]
struct Up {
    /// Emulated hosts, each with a sidecar
    #[arg(long, default_value_t = Plan::default().hosts)]
    hosts: usize,
    /// Sidecars that take requests for them
    #[arg(long, default_value_t = Plan::default().callers)]
    callers: usize,
    /// weir-controls; several are replicas, of which one leads
    #[arg(long, default_value_t = Plan::default().controls)]
    controls: usize,
    /// Give each host and weir-control a network namespace and an address of its own; needs root and iproute2
    #[arg(long)]
    netns: bool,
    /// Without Prometheus
    #[arg(long)]
    no_prometheus: bool,
    /// Run programs as they are built for development: sooner there, slower
    #[arg(long)]
    debug: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    match &args.what {
        What::Up(wanted) => up(workspace, wanted),
        What::Status => status::print(&folder(workspace)),
        What::Down => down(workspace),
    }
}

/// The one mesh of a checkout.
pub(crate) fn folder(workspace: &Workspace) -> PathBuf {
    workspace.cache().join("mesh")
}

fn up(workspace: &Workspace, wanted: &Up) -> Result<()> {
    let plan = Plan {
        hosts: wanted.hosts,
        callers: wanted.callers,
        controls: wanted.controls,
        netns: wanted.netns,
        prometheus: !wanted.no_prometheus,
        ..Plan::default()
    };
    plan.check()?;
    let folder = folder(workspace);
    // Before minutes of building.
    background::refuse_second(&folder)?;
    interrupt::catch()?;
    let (supervisor, programs) = programs::build(workspace, plan.prometheus, wanted.debug)?;
    let say = |line: &str| println!("mesh: {line}");
    let mesh = background::up(&supervisor, &plan, &programs, &folder, say)?;
    print(&mesh);
    Ok(())
}

fn down(workspace: &Workspace) -> Result<()> {
    let ended = background::down(&folder(workspace))?;
    match ended.supervisor {
        Some(id) => println!(
            "mesh: supervisor {id} and {} processes have ended; logs are in .weir/mesh/logs",
            ended.processes
        ),
        None => println!("mesh: none was up"),
    }
    for name in ended.removed {
        println!("mesh: removed what a killed mesh has left: {name}");
    }
    for name in ended.kept {
        println!("mesh: a killed mesh has left what cannot be removed: {name}");
    }
    Ok(())
}

fn print(mesh: &Description) {
    println!("\nConsul        http://{}", mesh.consul);
    if let Some(prometheus) = mesh.prometheus {
        println!("Prometheus    http://{prometheus}");
    }
    for control in &mesh.controls {
        println!(
            "{:<14} http://{} (admin), {} (xDS), http://{} (its sidecar's admin)",
            control.name, control.admin, control.xds, control.sidecar
        );
    }
    for caller in &mesh.callers {
        println!(
            "{:<13} http://{} (requests), http://{} (admin)",
            caller.name, caller.outbound, caller.admin
        );
    }
    for host in &mesh.hosts {
        println!(
            "{:<13} {} (sidecar), http://{} (application), http://{} (admin)",
            host.name, host.address, host.application, host.admin
        );
    }
    println!("logs          {}", mesh.logs.display());
    if let Some(caller) = mesh.callers.first() {
        println!(
            "\ncurl -i http://{} -H 'x-weir-key: shop-1' -H 'x-weir-priority: high' -H 'x-emulate-run-us: 2000' -H 'x-emulate-bytes: 1000000'",
            caller.outbound
        );
    }
    println!("\n`cargo xtask mesh status` shows it, `cargo xtask mesh down` ends it.");
}
