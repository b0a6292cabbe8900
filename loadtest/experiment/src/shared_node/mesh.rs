// SPDX-License-Identifier: Apache-2.0
//! weir-control and the sidecar through which all requests go.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use weir_stage::control::Control;
use weir_stage::envoy::Envoy;
use weir_stage::http;
use weir_stage::processes::Processes;

use crate::callers::{Sidecars, start_told};
use crate::shared_node::programs::Programs;

/// The only cluster.
pub const CLUSTER: &str = "rules";

/// Both of them.
pub struct Mesh {
    /// Who gives the levels.
    pub control: Control,
    /// Who refuses.
    pub envoy: Envoy,
}

/// Starts them for a host.
///
/// # Errors
/// One could not be started, or died, or the filter has no table.
pub fn start(
    processes: &mut Processes,
    programs: &Programs,
    host: SocketAddr,
    folder: &Path,
) -> Result<Mesh> {
    let programs = &programs.fleet;
    let configuration = configuration(host, &programs.filter);
    let (callers, control) = start_told(
        processes,
        programs,
        Sidecars::single(1),
        &configuration,
        folder,
    )?;
    let envoy = *callers.first().context("no caller was started")?;
    Ok(Mesh { control, envoy })
}

impl Mesh {
    /// Of the host: `configuration`, or `node` where its governor says.
    ///
    /// # Errors
    /// weir-control does not tell.
    pub fn capacity_from(&self) -> Result<String> {
        let tables: Value = serde_json::from_str(&http::get(self.control.admin, "/tables")?.body)?;
        let from = tables.pointer(&format!("/clusters/{CLUSTER}/hosts/0/capacity_from"));
        let from = from.and_then(Value::as_str);
        Ok(from.context("/tables says nothing of capacity")?.to_owned())
    }
}

/// The defaults, but for what this is about.
fn configuration(host: SocketAddr, filter: &Path) -> Value {
    json!({
        "xds": {"listen": "127.0.0.1:0"},
        "admin": {"listen": "127.0.0.1:0"},
        "clusters": {CLUSTER: {
            "policy": {"overload": "dagor"},
            // Of 25 jobs' time, for a run of seconds and jobs of some 20 ms.
            "dagor": {"target": "500ms"},
            "hosts": [{"address": host, "capacity_millicores": 1000}],
            // Four times in a window of the levels.
            "scrape": {"interval": "250ms"},
            "cache": {},
        }},
        "standalone": {
            // The reason of a choice tells when the first table has come.
            "filter": {"wasm": filter, "config": {"debug": true}},
            // weir-replay has its own deadline.
            "listeners": [{"name": "caller", "address": "127.0.0.1:0", "cluster": CLUSTER, "timeout": "0s"}],
        },
    })
}
