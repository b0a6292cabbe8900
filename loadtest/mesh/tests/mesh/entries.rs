// SPDX-License-Identifier: Apache-2.0
//! Configuration entries that change under requests, of which none fails.

use std::fs;

use anyhow::{Result, ensure};
use weir_mesh::{Caller, Mesh};
use weir_stage::http;

use crate::load::{Load, choice};
use crate::stage::{Act, Scenario};
use crate::waits::until;

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "no_request_fails_while_the_filters_configuration_changes_in_consul",
    Act::Shared(the_filter_is_configured_anew),
)];

fn the_filter_is_configured_anew(mesh: &mut Mesh) -> Result<()> {
    let old = fs::read_to_string(mesh.folder().join("consul/service-defaults-caller.json"))?;
    // In a string of JSON.
    let new = old.replace(
        r#"\"debug\": true"#,
        r#"\"debug\": true, \"tick\": \"40ms\""#,
    );
    ensure!(new != old, "the entry does not hold what is to be changed");
    let callers = mesh.callers().to_vec();
    let load = Load::start(mesh);
    for (name, entry, changed) in [("new.json", &new, true), ("old.json", &old, false)] {
        mesh.consul().write(name, entry)?;
        for caller in &callers {
            until(mesh, "the entry in the sidecar's listeners", |_| {
                (configured(caller)? == changed).then_some(())
            })?;
            until(mesh, "a choice by a table", |_| {
                let (_, reason) = choice(caller, "entry").ok()?;
                (!reason.ends_with("_table")).then_some(())
            })?;
        }
    }
    load.end_without_failure()
}

/// Whether the listener that takes requests now has the changed configuration.
fn configured(caller: &Caller) -> Option<bool> {
    let page = http::get(caller.admin, "/config_dump?resource=dynamic_listeners").ok()?;
    let page: serde_json::Value = serde_json::from_str(&page.body).ok()?;
    let listeners = page["configs"].as_array()?.iter();
    let mut active = listeners.map(|listener| listener["active_state"].to_string());
    let port = format!("\"port_value\":{}", caller.outbound.port());
    let ours = active.find(|listener| listener.contains(&port))?;
    Some(ours.contains("40ms"))
}
