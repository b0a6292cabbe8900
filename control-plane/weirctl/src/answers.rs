// SPDX-License-Identifier: Apache-2.0
//! What weir-control's `/tables` says, as far as it is shown. A field that an older or newer one leaves out has
//! its default.

use std::collections::BTreeMap;

use serde::Deserialize;

/// The state at one moment.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Tables {
    pub epoch: String,
    /// Absent of one that does not tell those of sidecars either.
    pub program_version: Option<String>,
    pub configuration_refused: Option<String>,
    pub replica: Option<Replica>,
    pub memory: Memory,
    pub clusters: BTreeMap<String, Cluster>,
    pub proxies: Vec<Proxy>,
    pub reports_refused: Vec<Reporter>,
    pub refusals: Vec<Refusal>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Memory {
    pub limit_bytes: Option<u64>,
    pub counted_bytes: u64,
}

/// What a weir-control is among several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Replica {
    /// `waiting`, `leading` or `following`.
    pub role: String,
    pub leader: Option<Leader>,
    pub complaint: Option<String>,
}

/// The one that is followed.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Leader {
    pub name: String,
    /// Where its tables come from: no admin address.
    pub address: String,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Cluster {
    pub version: Option<String>,
    pub table_age_ms: Option<u64>,
    pub overload: String,
    pub selection: String,
    /// `live`, `shadow`, or the share of the keys that is live: `10%`.
    pub mode: String,
    /// Why no request is steered, although the mode says that some are.
    pub withdrawn: Option<String>,
    pub health_ignored: bool,
    pub panics: bool,
    pub hosts_kept: Option<String>,
    pub choices_ignored_by: Vec<String>,
    pub sources: BTreeMap<String, Source>,
    pub unknown_series: u64,
    pub keys_salted: bool,
    pub cache_contents_dropped: bool,
    pub not_pushed: Option<String>,
    pub hosts: Vec<Host>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Host {
    pub address: String,
    /// `up`, `draining` or `down`.
    pub state: String,
    pub refuses_connections: bool,
    pub in_progress: Option<u32>,
    pub queued: Option<Vec<u32>>,
    pub queuing_delay_ms: Option<f64>,
    pub age_ms: Option<u64>,
    pub stale: bool,
    pub from: Option<String>,
    pub admission_level: u16,
    pub capacity_millicores: u32,
    /// The governor of its node reported once, and does not any more.
    pub node_silent: bool,
    pub known_keys: u64,
    pub sources: BTreeMap<String, Source>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Source {
    pub last_success_ms_ago: Option<u64>,
    pub error: Option<String>,
    pub failing_for_ms: Option<u64>,
    pub complaints: Vec<String>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Proxy {
    pub proxy: String,
    pub peer: Option<String>,
    pub identity: Option<String>,
    /// `weir` or `envoy`.
    pub kind: String,
    /// The filter's, or Envoy's.
    pub program_version: Option<String>,
    pub connected_for_ms: u64,
    /// Versions by type and name.
    pub accepted: BTreeMap<String, BTreeMap<String, String>>,
    pub refuses: Vec<Refusal>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Reporter {
    pub proxy: String,
    pub refused: BTreeMap<String, u64>,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[allow(missing_docs)]
pub struct Refusal {
    pub proxy: String,
    pub type_url: String,
    pub reason: String,
    pub resources: BTreeMap<String, String>,
    pub ms_ago: u64,
}

/// The type of hosts' tables.
const HOST_TABLE: &str = "weir.v1.HostTable";

impl Tables {
    /// It is alone, or leads: it polls hosts and builds tables itself.
    pub fn leads(&self) -> bool {
        let role = self.replica.as_ref().map(|replica| &*replica.role);
        role.is_none_or(|role| role == "leading")
    }
}

impl Proxy {
    /// The version of a cluster's table that it has accepted.
    pub fn table(&self, cluster: &str) -> Option<&str> {
        let tables = self
            .accepted
            .iter()
            .find(|(kind, _)| kind.ends_with(HOST_TABLE));
        tables?.1.get(cluster).map(String::as_str)
    }

    /// Names of the tables that it has accepted.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        let tables = self.accepted.iter();
        let tables = tables.filter(|(kind, _)| kind.ends_with(HOST_TABLE));
        tables.flat_map(|(_, names)| names.keys().map(String::as_str))
    }
}

impl Host {
    /// Requests that wait, of all classes.
    pub fn waiting(&self) -> Option<u64> {
        let queued = self.queued.as_ref()?;
        Some(queued.iter().map(|one| u64::from(*one)).sum())
    }

    /// What is wrong with its sources' answers, source first, and with its node.
    pub fn trouble(&self) -> Vec<String> {
        let mut trouble = trouble(&self.sources);
        if self.node_silent {
            trouble.push("node: its governor is silent".to_owned());
        }
        trouble
    }
}

impl Cluster {
    /// What is wrong with the sources that are asked for the whole cluster.
    pub fn trouble(&self) -> Vec<String> {
        trouble(&self.sources)
    }
}

fn trouble(sources: &BTreeMap<String, Source>) -> Vec<String> {
    let all = sources.iter().flat_map(|(name, source)| {
        let said = source.error.iter().chain(&source.complaints);
        said.map(move |said| format!("{name}: {said}"))
    });
    all.collect()
}
