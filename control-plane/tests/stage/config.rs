// SPDX-License-Identifier: Apache-2.0
//! weir-control's files.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::tools::{self, shell};

/// The change of configuration that makes the reason tell that it has arrived.
pub(crate) fn select(selection: &str) -> Value {
    json!({"clusters": {"rules": {"policy": {"selection": selection}}}})
}

/// The begin of every world.
pub(crate) fn base(xds: SocketAddr, filter: &Path) -> Value {
    json!({
        "xds": {"listen": xds},
        "admin": {"listen": "127.0.0.1:0"},
        "clusters": {"rules": {
            "policy": {"stale_after": "1s"},
            "cache_shards": 4,
            "hosts_file": "hosts.yaml",
            "scrape": {"interval": "200ms"},
            "cache": {"interval": "200ms"},
        }},
        "standalone": {
            "filter": {shell::field(filter): filter, "config": {"debug": true}},
            "listeners": [{"name": "egress", "address": "127.0.0.1:0", "cluster": "rules"}],
        },
    })
}

/// The bootstrap of an Envoy that has two weir-control as endpoints, with other text replaced too.
pub(crate) fn bootstrap_of_both(controls: [SocketAddr; 2], replace: &[(&str, &str)]) -> String {
    let endpoint = |port: u16| {
        format!(
            "endpoint:\n                  address:\n                    \
             socket_address: {{ address: 127.0.0.1, port_value: {port} }}"
        )
    };
    let both = controls.map(|control| endpoint(control.port()));
    let both = both.join("\n              - ");
    let only = endpoint(18_000);
    let replace = [replace, &[(&*only, &*both)]].concat();
    tools::envoy_config("standalone/bootstrap.yaml", &replace)
}

/// Objects are merged, null removes.
pub(crate) fn merge(target: &mut Value, change: Value) {
    match (target, change) {
        (Value::Object(target), Value::Object(change)) => {
            for (name, value) in change {
                if value.is_null() {
                    target.insert(name, Value::Null);
                } else {
                    merge(target.entry(name).or_insert(json!({})), value);
                }
            }
        }
        (target, change) => *target = change,
    }
}

/// Replaces the file in one step: it is read at any moment. JSON is YAML too.
pub(crate) fn write(folder: &Path, name: &str, value: &Value) {
    let new = folder.join(format!("{name}.new"));
    std::fs::write(&new, serde_json::to_vec_pretty(value).unwrap()).unwrap();
    std::fs::rename(new, folder.join(name)).unwrap();
}
