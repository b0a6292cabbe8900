// SPDX-License-Identifier: Apache-2.0
//! The same in a Consul Connect mesh: a sidecar at the host and at the caller, mTLS between them, the host found in
//! Consul.

use std::path::Path;

use anyhow::{Context, Result};
use weir_mesh::{Plan, Work};

use crate::cgroups::Cgroups;
use crate::shared_node::mesh::{Mesh, cluster};
use crate::shared_node::rounds::Setting;
use crate::shared_node::service;

/// Starts it, with the host in the service's cgroup: its sidecar floats, as all of the mesh does.
pub(super) fn start(
    setting: &Setting<'_>,
    program: &Path,
    cgroups: &Cgroups,
    folder: &Path,
) -> Result<Mesh> {
    let plan = Plan {
        hosts: 1,
        callers: 1,
        prometheus: false,
        cores: 1,
        work: Some(Work {
            store: setting.work.folder.clone(),
            threads: service::THREADS,
        }),
        host_flags: service::FLAGS.map(str::to_owned).to_vec(),
        cluster: cluster(),
        ..Plan::default()
    };
    let fleet = setting.programs.fleet.clone();
    let programs = weir_mesh::Programs {
        envoy: fleet.envoy,
        consul: program.to_owned(),
        prometheus: None,
        filter: fleet.filter,
        control: fleet.control,
        worker: fleet.worker,
    };
    let mut mesh = weir_mesh::Mesh::up(&plan, &programs, &folder.join("mesh"))?;
    let (host, caller) = (&mesh.hosts()[0], &mesh.callers()[0]);
    let (name, host, caller) = (host.name.clone(), host.address, caller.outbound);
    let (xds, admin) = (mesh.control().xds, mesh.control().admin);
    let (service, parts): (Vec<_>, Vec<_>) = mesh
        .processes()
        .list()?
        .into_iter()
        .partition(|process| process.name == name);
    let service = service.first().context("no host was started")?;
    cgroups.take(service.process.id().unsigned_abs())?;
    Ok(Mesh {
        caller,
        host,
        control: xds,
        admin,
        parts: parts.into_iter().map(|part| part.process).collect(),
        consul: Some(mesh),
    })
}
