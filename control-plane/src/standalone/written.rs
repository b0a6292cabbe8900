// SPDX-License-Identifier: Apache-2.0
//! The `standalone` section as written: shape only. [`Written::check`] turns it into a `Config`.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The `standalone` section.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Written {
    /// The filter that listeners run.
    pub filter: Filter,
    /// Name of weir-control's cluster in the sidecars' bootstrap. Default `weir-control`.
    pub control_cluster: Option<String>,
    /// What sidecars listen on. At least one.
    pub listeners: Vec<Listener>,
    /// Envoy's policy for requests without a usable choice: `least_request` (default),
    /// `round_robin` or `random`.
    pub fallback: Option<String>,
    /// What hosts speak: `http1` (default) or `h2`.
    pub protocol: Option<String>,
    /// Time to connect to a host. Default `1s`: hosts are near, and a dead one costs this much
    /// before the next in the list is tried.
    pub connect_timeout: Option<String>,
    /// Most requests, connections and retries of one sidecar to one cluster. Default 100000, which
    /// is none: admission is Weir's.
    pub max_requests: Option<u32>,
}

/// `standalone.filter`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Filter {
    /// Path of `weir_filter.wasm`; beside the configuration file if relative. Required.
    pub wasm: Option<String>,
    /// `inline` (default): sent to the sidecars. `path`: each sidecar has the file.
    pub delivery: Option<String>,
    /// Plugin configuration, merged over the generated one; `null` removes a field.
    pub config: Map<String, Value>,
}

/// One of `standalone.listeners`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Listener {
    /// Unique. Also the name of its routes and of its statistics. Required.
    pub name: Option<String>,
    /// `ip:port`. Required.
    pub address: Option<String>,
    /// Where its requests go: a name of `clusters`. Required.
    pub cluster: Option<String>,
    /// Hosts (`:authority`) that are served. Default `["*"]`.
    pub domains: Option<Vec<String>>,
    /// Time for a whole answer, retries included. Default `300s`; `0s` is no limit.
    pub timeout: Option<String>,
    /// Time for a request to arrive in full and leave the filters. Default `300s`, never none.
    pub request_timeout: Option<String>,
    /// File for access logs, such as `/dev/stdout`. Default none.
    pub access_log: Option<String>,
}
