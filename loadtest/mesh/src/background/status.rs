// SPDX-License-Identifier: Apache-2.0
//! How a mesh in the background is.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use weir_stage::record::{self, Entry};
use weir_stage::{http, usage};

use crate::description::Description;
use crate::mesh::RECORD;
use crate::supervisor::{self, DIED};
use crate::{consul, prometheus, sidecar};

/// A mesh in the background, now.
#[derive(Debug, Clone)]
pub struct Status {
    /// None: no mesh is up.
    pub supervisor: Option<u32>,
    /// Requests go through.
    pub ready: bool,
    /// Its processes.
    pub rows: Vec<Row>,
    /// Who has died and was not killed on purpose, each with the end of its log.
    pub died: String,
}

/// A process of the mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// What it is.
    pub name: String,
    /// Its number.
    pub id: u32,
    /// CPU time since it was started.
    pub cpu: Option<Duration>,
    /// Resident memory in bytes.
    pub resident: Option<u64>,
    /// What it says of itself.
    pub health: Health,
    /// Where it listens.
    pub ports: String,
    /// What it is among several: `leading`, `following`.
    pub role: Option<String>,
}

/// What a process says of itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// Its page says that it is ready.
    Good,
    /// Its page does not.
    Bad,
    /// It has ended.
    Gone,
    /// Its page is not known yet.
    Unknown,
}

/// How the mesh of a folder is.
///
/// # Errors
/// A file in the folder is another's.
pub fn status(folder: &Path) -> Result<Status> {
    let entries = record::read(&folder.join(RECORD))?;
    let description = Description::read(folder).ok();
    let row = |entry: &Entry| row(entry, description.as_ref());
    Ok(Status {
        supervisor: supervisor::running(folder).map(|entry| entry.id),
        ready: description.is_some(),
        rows: entries.iter().map(row).collect(),
        died: fs::read_to_string(folder.join(DIED)).unwrap_or_default(),
    })
}

fn row(entry: &Entry, mesh: Option<&Description>) -> Row {
    let ports = mesh.map_or(Vec::new(), |mesh| ports(mesh, &entry.name));
    let process = entry
        .lives()
        .then(|| usage::Process::new(entry.id).ok())
        .flatten();
    let health = match (process, ports.first()) {
        (None, _) => Health::Gone,
        (_, None) => Health::Unknown,
        (_, Some((address, page))) if http::get(*address, page).is_ok() => Health::Good,
        _ => Health::Bad,
    };
    let addresses: Vec<String> = ports
        .iter()
        .map(|(address, _)| address.to_string())
        .collect();
    Row {
        name: entry.name.clone(),
        id: entry.id,
        cpu: process.and_then(|process| process.cpu().ok()),
        resident: process.and_then(|process| Some(process.memory().ok()?.resident)),
        health,
        ports: addresses.join(" "),
        role: mesh.and_then(|mesh| role(mesh, &entry.name)),
    }
}

/// What a weir-control says that it is, of several.
fn role(mesh: &Description, name: &str) -> Option<String> {
    mesh.controls
        .iter()
        .find(|control| control.name == name)?
        .role()
}

/// Where a process listens; the first has a page that tells its health.
fn ports(mesh: &Description, name: &str) -> Vec<(SocketAddr, &'static str)> {
    let mut ports = Vec::new();
    match name {
        consul::AGENT => ports.push((mesh.consul, "/v1/status/leader")),
        consul::SERVER => ports.push((mesh.consul_server, "/v1/status/leader")),
        prometheus::NAME => ports.extend(mesh.prometheus.map(|address| (address, "/-/ready"))),
        _ => {}
    }
    for control in &mesh.controls {
        if name == control.name {
            ports.extend([(control.admin, "/ready"), (control.xds, "")]);
        } else if name == sidecar::name(&control.name) {
            ports.push((control.sidecar, "/ready"));
        }
    }
    for host in &mesh.hosts {
        if name == host.name {
            ports.push((host.application, "/ready"));
        } else if name == sidecar::name(&host.name) {
            ports.extend([(host.admin, "/ready"), (host.address, "")]);
        }
    }
    for caller in &mesh.callers {
        if name == sidecar::name(&caller.name) {
            ports.extend([(caller.admin, "/ready"), (caller.outbound, "")]);
        }
    }
    ports
}
