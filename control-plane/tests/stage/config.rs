// SPDX-License-Identifier: Apache-2.0
//! weir-control's files.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::tools::shell;

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
