// SPDX-License-Identifier: Apache-2.0
//! Who may ask weir-control.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use weir_mesh::{CALLERS, CONTROL, Mesh};

use crate::load::{choice, send};
use crate::stage::{Act, Scenario};
use crate::waits::until;

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "a_sidecar_that_no_intention_lets_through_has_no_table_and_serves_until_one_does",
    Act::Shared(denied_then_allowed),
)];

/// How often a sidecar was told other listeners: an intention is part of one.
const TOLD: &str = "listener_manager.lds.update_success";
/// How often an intention has refused a request.
const REFUSED: &str = "http.public_listener.rbac.denied";

fn denied_then_allowed(mesh: &mut Mesh) -> Result<()> {
    let sidecar = mesh.control().sidecar;
    let told = count(sidecar, TOLD)?;
    mesh.consul().intend(CALLERS, CONTROL, false)?;
    // Else the caller might ask before the sidecar of weir-control knows.
    until(mesh, "an intention that is known", |_| {
        (count(sidecar, TOLD).ok()? > told).then_some(())
    })?;
    let refused = count(sidecar, REFUSED)?;
    let caller = mesh.add_caller()?;
    until(mesh, "a refusal", |_| {
        (count(sidecar, REFUSED).ok()? > refused).then_some(())
    })?;
    for number in 0..20 {
        let answer = send(caller.outbound, &format!("denied-{number}"))?;
        let reason = answer.header("x-weir-reason").unwrap_or_default();
        ensure!(
            answer.status == "200" && reason == "no_table",
            "{} with reason {reason:?}",
            answer.status
        );
    }
    mesh.consul().intend(CALLERS, CONTROL, true)?;
    until(mesh, "a table", |_| {
        let (_, reason) = choice(&caller, "allowed").ok()?;
        (reason != "no_table").then_some(())
    })?;
    mesh.remove_caller(&caller.name)
}

/// One counter of a sidecar.
fn count(sidecar: SocketAddr, name: &str) -> Result<u64> {
    let page = weir_stage::http::get(sidecar, &format!("/stats?filter=^{name}$"))?;
    let (_, value) = page
        .body
        .trim()
        .split_once(": ")
        .with_context(|| format!("no {name} of the sidecar at {sidecar}"))?;
    value.parse().with_context(|| format!("{name}: {value}"))
}
