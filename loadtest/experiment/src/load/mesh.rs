// SPDX-License-Identifier: Apache-2.0
//! The same fleet in a Consul Connect mesh: a sidecar at each host, mTLS between them, hosts found in Consul.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::json;
use weir_mesh::{Mesh, Plan};

use crate::load::Args;
use crate::load::stage::{CALLERS, CORES, HOSTS, Stage, host_flags};
use crate::load::ways::{SELECTION, levels, scrape};
use crate::sampler::Sights;

/// Starts it, with Weir in the callers' sidecars.
pub(super) fn start(args: &Args, folder: &Path) -> Result<Stage> {
    let plan = Plan {
        hosts: HOSTS,
        callers: CALLERS.count,
        prometheus: false,
        cores: CORES as u32,
        host_flags: host_flags(args.queue),
        cluster: json!({
            "policy": {"selection": SELECTION, "overload": "dagor"},
            "dagor": levels(),
            "scrape": scrape(),
        }),
        ..Plan::default()
    };
    let fleet = args.programs.fleet.clone();
    let consul = args.programs.consul.clone();
    let programs = weir_mesh::Programs {
        envoy: fleet.envoy,
        consul: consul.context("--against mesh needs --consul")?,
        prometheus: None,
        filter: fleet.filter,
        control: fleet.control,
        worker: fleet.worker,
    };
    let say = |line: &str| println!("mesh: {line}");
    let mesh = Mesh::up_telling(&plan, &programs, &folder.join("mesh"), say)?;
    let found = mesh.description();
    Ok(Stage {
        callers: found.callers.iter().map(|caller| caller.outbound).collect(),
        sights: Sights {
            hosts: found.hosts.iter().map(|host| host.application).collect(),
            named: found.hosts.iter().map(|host| host.address).collect(),
            control: Some(mesh.control().admin),
        },
        mesh: Some(mesh),
    })
}
