// SPDX-License-Identifier: Apache-2.0
//! Weir as it is shipped: weir-control, and the sidecars that it tells.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use weir_stage::control::{self, Control};
use weir_stage::processes::Processes;

use crate::programs::Programs;
use crate::sidecar::{HOSTS, bootstrap, clusters, filters};

/// Starts weir-control with these clusters.
pub(crate) fn control(
    processes: &mut Processes,
    programs: &Programs,
    clusters: &Value,
    folder: &Path,
) -> Result<Control> {
    let config = json!({
        "xds": {"listen": "127.0.0.1:0"},
        "admin": {"listen": "127.0.0.1:0"},
        "clusters": clusters,
    });
    control::start(
        processes,
        &programs.release("weir-control")?,
        &config,
        folder,
    )
}

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
) -> Result<Value> {
    let module = Programs::needed(&programs.filter, "filter")?;
    let configuration = json!({
        "control_cluster": "weir-control",
        "clusters": {HOSTS: {"table": table}},
    });
    let clusters = vec![
        clusters::named_and_stripped(hosts),
        clusters::grpc("weir-control", control),
    ];
    let filter = filters::wasm(node, module, &configuration);
    Ok(bootstrap(node, vec![filter], clusters))
}
