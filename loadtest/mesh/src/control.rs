// SPDX-License-Identifier: Apache-2.0
//! weir-control.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use weir_consul::merge;
use weir_stage::http;

use crate::HOSTS;
use crate::network::Place;
use crate::plan::Plan;

/// What its sidecar is told beyond other sidecars. A connection keeps the intentions of its first moment, and by
/// default Envoy asks callers to leave it by and by, over ten minutes.
pub(crate) const SIDECAR_ARGUMENTS: [&str; 2] = ["--drain-strategy", "immediate"];

/// A weir-control of the mesh. Its processes are `<name>` and `<name>-sidecar`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Control {
    /// Consul's id of the instance: `weir-control`, and of further ones `weir-control-2`.
    pub name: String,
    /// Where its own sidecar connects.
    pub xds: SocketAddr,
    /// Its admin pages.
    pub admin: SocketAddr,
    /// Its sidecar's admin pages.
    pub sidecar: SocketAddr,
    /// Where both run, if not beside the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
}

impl Control {
    /// What it is among several, as it says itself: `leading`, `following`, `waiting`. None: it says nothing, or
    /// there is only one.
    #[must_use]
    pub fn role(&self) -> Option<String> {
        let page = http::get(self.admin, "/tables").ok()?;
        let tables: Value = serde_json::from_str(&page.body).ok()?;
        Some(tables.pointer("/replica/role")?.as_str()?.to_owned())
    }

    pub(crate) fn place(&self) -> Place {
        Place {
            address: self.xds.ip(),
            namespace: self.namespace.clone(),
        }
    }
}

/// What it is told: hosts come from Consul's agent at this port, their figures from their own pages.
pub(crate) fn config(control: &Control, consul: u16, plan: &Plan) -> Value {
    let consul = format!("http://{}:{consul}", control.place().gateway());
    let mut cluster = json!({
        "consul": {"address": consul},
        "scrape": {},
        "cache": {},
    });
    merge(&mut cluster, &plan.cluster);
    // Nothing of a namespace's addresses leaves this machine.
    let plaintext = control.namespace.is_some();
    let mut config = json!({
        "xds": {"listen": control.xds, "plaintext": plaintext},
        "admin": {"listen": control.admin, "plaintext": plaintext},
        "clusters": {HOSTS: cluster},
    });
    if plan.controls > 1 {
        config["replicas"] = json!({
            "consul": {"address": consul},
            "address": control.xds,
            "name": control.name,
        });
    }
    merge(&mut config, &plan.control);
    config
}

/// A whole file at any moment: weir-control looks at it every second.
pub(crate) fn write(file: &Path, config: &Value) -> Result<()> {
    // JSON is YAML too.
    weir_whole_file::write(file, serde_json::to_vec_pretty(config)?)
        .with_context(|| format!("writing {}", file.display()))
}

pub(crate) fn command(program: &Path, config: &Path) -> Command {
    let mut command = Command::new(program);
    command.arg("--config").arg(config);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn control() -> Control {
        Control {
            name: "weir-control-2".to_owned(),
            xds: "127.0.0.1:1".parse().unwrap(),
            admin: "127.0.0.1:2".parse().unwrap(),
            sidecar: "127.0.0.1:3".parse().unwrap(),
            namespace: None,
        }
    }

    #[test]
    fn only_several_are_told_of_each_other() {
        let told = |controls| {
            let plan = Plan {
                controls,
                ..Plan::default()
            };
            config(&control(), 8500, &plan)["replicas"].clone()
        };
        assert_eq!(told(1), Value::Null);
        let expected = json!({
            "consul": {"address": "http://127.0.0.1:8500"},
            "address": "127.0.0.1:1",
            "name": "weir-control-2",
        });
        assert_eq!(told(2), expected);
    }

    #[test]
    fn what_a_plan_says_of_the_cluster_goes_over_what_the_mesh_says() {
        let plan = Plan {
            cluster: json!({"cache": null, "scrape": {"interval": "100ms"}, "policy": {"overload": "dagor"}}),
            ..Plan::default()
        };
        let config = config(&control(), 1, &plan);
        let expected = json!({
            "consul": {"address": "http://127.0.0.1:1"},
            "scrape": {"interval": "100ms"},
            "policy": {"overload": "dagor"},
        });
        assert_eq!(config["clusters"]["rules"], expected);
    }
}
