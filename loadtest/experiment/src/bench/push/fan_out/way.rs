// SPDX-License-Identifier: Apache-2.0
//! Who tells the sidecars.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};
use weir_stage::control;
use weir_stage::processes::Processes;
use weir_stage::usage::Process;

use super::linear_cache;
use crate::bench::setting::Setting;
use crate::fleet::hosts::Hosts;

const CLUSTER: &str = "rules";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Weir,
    /// A resource a host: only hosts that changed travel.
    LinearHosts,
    /// One resource with all hosts, as weir-control has it.
    LinearWhole,
}

impl Way {
    pub(super) const ALL: [Self; 3] = [Self::Weir, Self::LinearHosts, Self::LinearWhole];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Weir => "weir-control",
            Self::LinearHosts => "linear cache, a resource a host",
            Self::LinearWhole => "linear cache, one resource",
        }
    }

    pub(super) fn folder(self) -> &'static str {
        match self {
            Self::Weir => "weir-control",
            Self::LinearHosts => "linear-cache-hosts",
            Self::LinearWhole => "linear-cache-whole",
        }
    }

    /// What a sidecar asks for. By none it asks for all, which costs the linear cache least where
    /// there are many: it then need not look for the watches of each.
    pub(super) fn names(self) -> Vec<String> {
        match self {
            Self::LinearHosts => Vec::new(),
            Self::Weir | Self::LinearWhole => vec![CLUSTER.to_owned()],
        }
    }

    pub(super) fn start(
        self,
        setting: &Setting,
        processes: &mut Processes,
        hosts: &Hosts,
        folder: &Path,
    ) -> Result<(Process, SocketAddr)> {
        if self == Self::Weir {
            let program = &setting.programs.control;
            let control = control::start(processes, program, &config(&hosts.addresses), folder)?;
            return Ok((control.process, control.xds));
        }
        let program = setting.programs.linear_cache()?;
        let whole = self == Self::LinearWhole;
        linear_cache::start(processes, program, hosts, whole, folder)
    }
}

/// The defaults, but for cache contents, of which these hosts have none.
fn config(hosts: &[SocketAddr]) -> Value {
    let host = |address: &SocketAddr| json!({"address": address});
    let hosts: Vec<Value> = hosts.iter().map(host).collect();
    control::config(json!({CLUSTER: {"hosts": hosts, "scrape": {}, "cache_shards": 0}}))
}
