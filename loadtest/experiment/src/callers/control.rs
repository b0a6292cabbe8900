// SPDX-License-Identifier: Apache-2.0
//! What weir-control is told.

use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Value, json};

/// What makes a way, beside weir-control's defaults.
pub(crate) struct Settings<'a> {
    pub(crate) selection: &'a str,
    pub(crate) overload: &'a str,
    pub(crate) breaker_queued_jobs: u32,
    pub(crate) dagor: Value,
    pub(crate) scrape: Value,
    /// Of each host.
    pub(crate) cores: usize,
    /// Of the sidecars' route.
    pub(crate) timeout: &'a str,
}

/// The configuration of one way.
pub(crate) fn config(settings: &Settings<'_>, hosts: &[SocketAddr], filter: &Path) -> Value {
    let hosts: Vec<Value> = hosts
        .iter()
        .map(|address| json!({"address": address, "capacity_millicores": 1000 * settings.cores}))
        .collect();
    json!({
        "xds": {"listen": "127.0.0.1:0"},
        "admin": {"listen": "127.0.0.1:0"},
        "clusters": {"rules": {
            "policy": {
                "selection": settings.selection,
                "overload": settings.overload,
                "breaker_queued_jobs": settings.breaker_queued_jobs,
            },
            "dagor": settings.dagor,
            "hosts": hosts,
            "scrape": settings.scrape,
            "cache": {},
        }},
        "standalone": {
            // The reason of a choice tells when the first table has come, and is kept with the results.
            "filter": {"wasm": filter, "config": {"debug": true}},
            // Each sidecar takes a free port.
            "listeners": [{
                "name": "caller",
                "address": "127.0.0.1:0",
                "cluster": "rules",
                "timeout": settings.timeout,
            }],
        },
    })
}
