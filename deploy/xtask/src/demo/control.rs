// SPDX-License-Identifier: Apache-2.0
//! What weir-control is told.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

use crate::demo::plan::Plan;

/// The configuration of one way: the defaults, but for what makes the way and the plan's limits.
pub(super) fn config(
    selection: &str,
    overload: &str,
    plan: &Plan,
    hosts: &[SocketAddr],
    filter: &Path,
) -> Value {
    let hosts: Vec<Value> = hosts
        .iter()
        .map(|address| json!({"address": address, "capacity_millicores": 1000 * plan.cores}))
        .collect();
    let limits = &plan.limits;
    json!({
        "xds": {"listen": "127.0.0.1:0"},
        "admin": {"listen": "127.0.0.1:0"},
        "clusters": {"rules": {
            "policy": {
                "selection": selection,
                "overload": overload,
                "breaker_queued_jobs": limits.breaker_queued_jobs,
            },
            "dagor": {
                "control": "paper",
                "threshold": limits.dagor_threshold,
                "alpha": limits.dagor_step,
                "beta": limits.dagor_step,
            },
            "hosts": hosts,
            "scrape": {},
            "cache": {},
        }},
        "standalone": {
            // The reason of a choice tells when the first table has come, and is kept with the results.
            "filter": {"wasm": filter, "config": {"debug": true}},
            // Each sidecar takes a free port. The workload has its own deadline.
            "listeners": [{"name": "caller", "address": "127.0.0.1:0", "cluster": "rules", "timeout": "0s"}],
        },
    })
}
