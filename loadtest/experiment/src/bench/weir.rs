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
    let filter = filter(node, programs, &json!({"table": table}));
    with(node, filter, hosts, control)
}

/// [`sidecar`] by the filter's other shell.
pub(crate) fn native_sidecar(
    node: &str,
    programs: &Programs,
    table: &str,
    hosts: &[SocketAddr],
    control: SocketAddr,
) -> Value {
    let mut configuration = configuration(&json!({"table": table}));
    // The module cannot ask Envoy for it.
    configuration["proxy"] = node.into();
    let filter = filters::native(node, &programs.native, &configuration);
    with(node, filter, hosts, control)
}

/// [`sidecar`] where keys are the blocks of prompts; `prompt` as in the plugin's configuration.
pub(crate) fn prompt_sidecar(
    node: &str,
    programs: &Programs,
    prompt: &Value,
    hosts: &[SocketAddr],
    control: SocketAddr,
) -> Value {
    let cluster = json!({"table": HOSTS, "key": {"prompt": prompt}});
    let mut filter = filter(node, programs, &cluster);
    filter["typed_config"]["config"]["allow_on_headers_stop_iteration"] = true.into();
    with(node, filter, hosts, control)
}

fn filter(node: &str, programs: &Programs, cluster: &Value) -> Value {
    filters::wasm(node, &programs.filter, &configuration(cluster))
}

fn configuration(cluster: &Value) -> Value {
    json!({
        "control_cluster": "weir-control",
        "clusters": {HOSTS: cluster},
    })
}

fn with(node: &str, filter: Value, hosts: &[SocketAddr], control: SocketAddr) -> Value {
    let clusters = vec![
        clusters::named_and_stripped(hosts),
        clusters::grpc("weir-control", control),
    ];
    bootstrap(node, vec![filter], clusters)
}
