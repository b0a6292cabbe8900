// SPDX-License-Identifier: Apache-2.0
//! What is between the requests and the host: a sidecar with the filter, weir-control, and in a Consul mesh more.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use weir_stage::http;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

use crate::callers::{Sidecars, start_told};
use crate::cgroups::Cgroups;
use crate::shared_node::rounds::Setting;
use crate::shared_node::{consul, service};

/// The only cluster.
pub const CLUSTER: &str = weir_mesh::HOSTS;

/// All of it, and the host behind it.
pub struct Mesh {
    /// Takes requests.
    pub caller: SocketAddr,
    /// The host, as weir-control has it.
    pub host: SocketAddr,
    /// weir-control's xDS listener,
    pub control: SocketAddr,
    /// and its admin pages.
    pub admin: SocketAddr,
    /// All of it but the host.
    pub parts: Vec<Process>,
    /// Consul's has processes of its own, which end with it.
    pub consul: Option<weir_mesh::Mesh>,
}

/// Starts all of it, with the host in the service's cgroup.
///
/// # Errors
/// One could not be started, or died, or the filter has no table.
pub fn start(
    processes: &mut Processes,
    setting: &Setting<'_>,
    cgroups: &Cgroups,
    folder: &Path,
) -> Result<Mesh> {
    if let Some(program) = setting.consul {
        return consul::start(setting, program, cgroups, folder);
    }
    let programs = setting.programs;
    let host = service::start(processes, programs, cgroups, setting.work, folder)?;
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
    Ok(Mesh {
        caller: envoy.listener,
        host,
        control: control.xds,
        admin: control.admin,
        parts: vec![envoy.process, control.process],
        consul: None,
    })
}

impl Mesh {
    /// Of the host: `configuration`, or `node` where its governor says.
    ///
    /// # Errors
    /// weir-control does not tell.
    pub fn capacity_from(&self) -> Result<String> {
        let tables: Value = serde_json::from_str(&http::get(self.admin, "/tables")?.body)?;
        let from = tables.pointer(&format!("/clusters/{CLUSTER}/hosts/0/capacity_from"));
        let from = from.and_then(Value::as_str);
        Ok(from.context("/tables says nothing of capacity")?.to_owned())
    }

    /// # Errors
    /// A process of Consul's mesh has ended.
    pub fn must_live(&mut self) -> Result<()> {
        match &mut self.consul {
            Some(consul) => consul.processes().check(),
            None => Ok(()),
        }
    }
}

/// What weir-control is told of the cluster, but for its hosts: the defaults, but for what this is about.
#[must_use]
pub fn cluster() -> Value {
    json!({
        "policy": {"overload": "dagor"},
        // Of 25 jobs' time, for a run of seconds and jobs of some 20 ms.
        "dagor": {"target": "500ms"},
        // Four times in a window of the levels.
        "scrape": {"interval": "250ms"},
        "cache": {},
    })
}

fn configuration(host: SocketAddr, filter: &Path) -> Value {
    let mut cluster = cluster();
    cluster["hosts"] = json!([{"address": host, "capacity_millicores": 1000}]);
    json!({
        "xds": {"listen": "127.0.0.1:0"},
        "admin": {"listen": "127.0.0.1:0"},
        "clusters": {CLUSTER: cluster},
        "standalone": {
            // The reason of a choice tells when the first table has come.
            "filter": {"wasm": filter, "config": {"debug": true}},
            // weir-replay has its own deadline.
            "listeners": [{"name": "caller", "address": "127.0.0.1:0", "cluster": CLUSTER, "timeout": "0s"}],
        },
    })
}
