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

/// Makes a sidecar: its node, programs, the plugin's configuration, hosts, and where weir-control is.
pub(crate) type Sidecar = fn(&str, &Programs, Value, &[SocketAddr], SocketAddr) -> Value;

/// The plugin's configuration for the cluster of hosts, which is decided by this table of weir-control's.
pub(crate) fn cluster_of(table: &str) -> Value {
    configuration(HOSTS, &json!({"table": table}))
}

/// The same whatever the cluster is called, and whoever calls.
pub(crate) fn any(table: &str) -> Value {
    let mut configuration = configuration("*", &json!({"table": table}));
    configuration["trust"] = "any".into();
    configuration
}

/// The same for the cluster of hosts where keys are the blocks of prompts; `prompt` as in that configuration.
pub(crate) fn prompts(prompt: &Value) -> Value {
    configuration(HOSTS, &json!({"table": HOSTS, "key": {"prompt": prompt}}))
}

/// [`Sidecar`] with the module of WebAssembly.
pub(crate) fn sidecar(
    node: &str,
    programs: &Programs,
    configuration: Value,
    hosts: &[SocketAddr],
    control: SocketAddr,
) -> Value {
    let filter = filters::wasm(node, &programs.filter, &configuration);
    with(node, filter, hosts, control)
}

/// [`sidecar`] by the filter's other shell.
pub(crate) fn native_sidecar(
    node: &str,
    programs: &Programs,
    mut configuration: Value,
    hosts: &[SocketAddr],
    control: SocketAddr,
) -> Value {
    // The module cannot ask Envoy for it.
    configuration["proxy"] = node.into();
    let filter = filters::native(node, &programs.native, &configuration);
    with(node, filter, hosts, control)
}

/// [`sidecar`] whose filter is shown bodies.
pub(crate) fn reading_sidecar(
    node: &str,
    programs: &Programs,
    configuration: Value,
    hosts: &[SocketAddr],
    control: SocketAddr,
) -> Value {
    let mut filter = filters::wasm(node, &programs.filter, &configuration);
    filter["typed_config"]["config"]["allow_on_headers_stop_iteration"] = true.into();
    with(node, filter, hosts, control)
}

fn configuration(name: &str, cluster: &Value) -> Value {
    json!({
        "control_cluster": "weir-control",
        "clusters": {name: cluster},
    })
}

fn with(node: &str, filter: Value, hosts: &[SocketAddr], control: SocketAddr) -> Value {
    let clusters = vec![
        clusters::named_and_stripped(hosts),
        clusters::grpc("weir-control", control),
    ];
    bootstrap(node, vec![filter], clusters)
}
