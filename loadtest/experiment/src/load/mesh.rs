// SPDX-License-Identifier: Apache-2.0
//! The same fleet in a Consul Connect mesh: a sidecar at each host, mTLS between them, hosts found in Consul.

use std::path::Path;

use anyhow::Result;
use serde_json::json;
use weir_mesh::{Mesh, Plan};

use crate::demo::programs::Programs;
use crate::demo::sampler::Sights;
use crate::load::against::{Against, Queue};
use crate::load::stage::{CALLERS, CORES, HOSTS, host_flags};
use crate::load::ways::{SELECTION, levels, scrape};

/// Starts it, with Weir in the callers' sidecars.
pub(super) fn start(
    programs: &Programs,
    consul: &Path,
    queue: Queue,
    folder: &Path,
) -> Result<Against> {
    let plan = Plan {
        hosts: HOSTS,
        callers: CALLERS,
        prometheus: false,
        cores: CORES as u32,
        host_flags: host_flags(queue),
        cluster: json!({
            "policy": {"selection": SELECTION, "overload": "dagor"},
            "dagor": levels(),
            "scrape": scrape(),
        }),
        ..Plan::default()
    };
    let programs = weir_mesh::Programs {
        envoy: programs.envoy.clone(),
        consul: consul.to_owned(),
        prometheus: None,
        filter: programs.filter.clone(),
        control: programs.control.clone(),
        worker: programs.worker.clone(),
    };
    let say = |line: &str| println!("mesh: {line}");
    let mesh = Mesh::up_telling(&plan, &programs, &folder.join("mesh"), say)?;
    let found = mesh.description();
    Ok(Against {
        callers: found.callers.iter().map(|caller| caller.outbound).collect(),
        sights: Sights {
            hosts: found.hosts.iter().map(|host| host.application).collect(),
            named: found.hosts.iter().map(|host| host.address).collect(),
            control: Some(mesh.control().admin),
        },
        _mesh: Some(mesh),
    })
}
