// SPDX-License-Identifier: Apache-2.0
//! weir-control.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::HOSTS;
use crate::plan::Plan;

/// A weir-control of the mesh. Its processes are `weir-control` and `weir-control-sidecar`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Where its own sidecar connects.
    pub xds: SocketAddr,
    /// Its admin pages.
    pub admin: SocketAddr,
    /// Its sidecar's admin pages.
    pub sidecar: SocketAddr,
}

/// What it is told: hosts come from Consul, their figures from their own pages.
pub(crate) fn config(control: &Control, consul: SocketAddr, plan: &Plan) -> Value {
    let mut cluster = json!({
        "consul": {"address": format!("http://{consul}")},
        "scrape": {},
        "cache": {},
    });
    merge(&mut cluster, &plan.cluster);
    json!({
        "xds": {"listen": control.xds},
        "admin": {"listen": control.admin},
        "clusters": {HOSTS: cluster},
    })
}

/// Writes it beside its place and renames it: weir-control looks at it every second.
pub(crate) fn write(file: &Path, config: &Value) -> Result<()> {
    let unfinished = file.with_extension("part");
    // JSON is YAML too.
    fs::write(&unfinished, serde_json::to_vec_pretty(config)?)
        .and_then(|()| fs::rename(&unfinished, file))
        .with_context(|| format!("writing {}", file.display()))
}

pub(crate) fn command(program: &Path, config: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--config").arg(config);
    command
}

/// RFC 7396.
pub(crate) fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        target.clone_from(patch);
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in patch {
        match value {
            Value::Null => drop(
                target
                    .as_object_mut()
                    .and_then(|fields| fields.remove(name)),
            ),
            value => merge(&mut target[name], value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_plan_says_of_the_cluster_goes_over_what_the_mesh_says() {
        let plan = Plan {
            cluster: json!({"cache": null, "scrape": {"interval": "100ms"}, "policy": {"overload": "dagor"}}),
            ..Plan::default()
        };
        let address = "127.0.0.1:1".parse().unwrap();
        let control = Control {
            xds: address,
            admin: address,
            sidecar: address,
        };
        let config = config(&control, address, &plan);
        let expected = json!({
            "consul": {"address": "http://127.0.0.1:1"},
            "scrape": {"interval": "100ms"},
            "policy": {"overload": "dagor"},
        });
        assert_eq!(config["clusters"]["rules"], expected);
    }
}
