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

impl Settings<'_> {
    /// weir-control's configuration for hosts that callers find at `hosts`, and that have their own pages at `pages`:
    /// elsewhere, where an Envoy stands before each.
    pub(crate) fn config(
        &self,
        hosts: &[SocketAddr],
        pages: &[SocketAddr],
        filter: &Path,
    ) -> Value {
        let host = |(address, page): (&SocketAddr, &SocketAddr)| {
            json!({
                "address": address,
                "metrics_address": page,
                "capacity_millicores": 1000 * self.cores,
            })
        };
        let hosts: Vec<Value> = hosts.iter().zip(pages).map(host).collect();
        let mut config = json!({
            "xds": {"listen": "127.0.0.1:0"},
            "admin": {"listen": "127.0.0.1:0"},
            "clusters": {"rules": {
                "policy": {
                    "selection": self.selection,
                    "overload": self.overload,
                    "breaker_queued_jobs": self.breaker_queued_jobs,
                },
                "dagor": self.dagor,
                "hosts": hosts,
                "scrape": self.scrape,
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
                    "timeout": self.timeout,
                }],
            },
        });
        if self.selection == "caching_plan" {
            // Learned, as nobody has written one, and in place of what caches say. It knows of a key what is told when its
            // first request has ended.
            let cluster = &mut config["clusters"]["rules"];
            cluster["planner"] = json!({"every": "1s"});
            cluster["cache"] = Value::Null;
        }
        config
    }
}
