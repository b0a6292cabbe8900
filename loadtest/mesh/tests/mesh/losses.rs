// SPDX-License-Identifier: Apache-2.0
//! weir-control and Consul go away and come back under requests, of which none fails.

use std::thread::sleep;
use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;
use weir_mesh::{CONTROL, Mesh};
use weir_stage::http;

use crate::load::{Load, choice};
use crate::stage::{Act, Scenario};
use crate::waits::until;

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "no_request_fails_while_weir_control_is_killed_and_started_again",
        Act::Shared(control_is_lost),
    ),
    (
        "a_way_to_weir_control_that_is_frozen_is_noticed_and_no_request_fails",
        Act::Shared(|mesh| control_is_frozen(mesh, "weir-control-sidecar")),
    ),
    (
        "a_weir_control_that_is_frozen_behind_its_sidecar_is_noticed_and_no_request_fails",
        Act::Shared(|mesh| control_is_frozen(mesh, CONTROL)),
    ),
    (
        "no_request_fails_while_consuls_agent_is_gone_for_seconds",
        Act::Shared(|mesh| consul_is_lost(mesh, "consul")),
    ),
    (
        "no_request_fails_while_consuls_server_is_gone_for_seconds",
        Act::Shared(|mesh| consul_is_lost(mesh, "consul-server")),
    ),
];

/// As long as something is away. The condition is what does not fail meanwhile, so there is nothing to wait
/// for.
const AWAY: Duration = Duration::from_secs(3);

fn control_is_lost(mesh: &mut Mesh) -> Result<()> {
    let load = Load::start(mesh);
    mesh.processes().kill(CONTROL)?;
    sleep(AWAY);
    mesh.processes().again(CONTROL)?;
    wait_for_streams(mesh)?;
    load.end_without_failure()?;
    let callers = mesh.callers().to_vec();
    for caller in &callers {
        until(mesh, "a choice by a table", |_| {
            let (_, reason) = choice(caller, "again").ok()?;
            (!reason.ends_with("_table")).then_some(())
        })?;
    }
    Ok(())
}

fn control_is_frozen(mesh: &mut Mesh, process: &str) -> Result<()> {
    let load = Load::start(mesh);
    mesh.processes().signal(process, Signal::SIGSTOP)?;
    let noticed = until_connected(mesh, false);
    // It is thawed whatever came of it: a frozen process does not end.
    mesh.processes().signal(process, Signal::SIGCONT)?;
    noticed?;
    until_connected(mesh, true)?;
    load.end_without_failure()
}

/// Waits until every caller's filter says that it has a stream to weir-control, or has none.
fn until_connected(mesh: &mut Mesh, connected: bool) -> Result<()> {
    let expected = format!("wasmcustom.weir_filter_connected: {}", u8::from(connected));
    for caller in mesh.callers().to_vec() {
        until(mesh, &expected, |_| {
            let page = http::get(caller.admin, "/stats?filter=weir_filter_connected").ok()?;
            page.body.contains(&expected).then_some(())
        })?;
    }
    Ok(())
}

fn consul_is_lost(mesh: &mut Mesh, process: &str) -> Result<()> {
    let load = Load::start(mesh);
    mesh.processes().kill(process)?;
    sleep(AWAY);
    mesh.processes().again(process)?;
    let hosts = mesh.hosts().len();
    until(mesh, "all hosts in Consul's catalog again", |mesh| {
        let passing = mesh.consul().passing(weir_mesh::HOSTS).ok()?;
        (passing.len() == hosts).then_some(())
    })?;
    // Its word comes to the sidecars while requests go on.
    sleep(AWAY);
    load.end_without_failure()
}

/// Waits until every caller's filter has come back to weir-control.
fn wait_for_streams(mesh: &mut Mesh) -> Result<()> {
    let callers = mesh.callers().len();
    until(mesh, "the callers' streams to weir-control", |mesh| {
        let page = http::get(mesh.control().admin, "/tables").ok()?;
        let tables: serde_json::Value = serde_json::from_str(&page.body).ok()?;
        (tables["proxies"].as_array()?.len() >= callers).then_some(())
    })
}
