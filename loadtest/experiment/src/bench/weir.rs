// SPDX-License-Identifier: Apache-2.0
//! Weir as it is shipped: weir-control, and the sidecars that it tells.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::bench::programs::Programs;
use crate::sidecar::{HOSTS, bootstrap, clusters, filters};

/// What weir-control is told of a cluster whose hosts it asks for load and cache contents as `poll` says. Without a
/// `policy` it has the defaults.
pub(crate) fn cluster(hosts: &[SocketAddr], poll: &Value) -> Value {
    let hosts: Vec<Value> = hosts.iter().map(|host| json!({"address": host})).collect();
    json!({"hosts": hosts, "scrape": poll, "cache": poll})
}

/// A sidecar that decides by this table of weir-control's.
pub(crate) fn sidecar(
    node: &str,
    programs: &Programs,
    table: &str,
    hosts: &[SocketAddr],
    control: SocketAddr,
) -> Value {
    let configuration = json!({
        "control_cluster": "weir-control",
        "clusters": {HOSTS: {"table": table}},
    });
    let clusters = vec![
        clusters::named_and_stripped(hosts),
        clusters::grpc("weir-control", control),
    ];
    let filter = filters::wasm(node, &programs.filter, &configuration);
    bootstrap(node, vec![filter], clusters)
}
