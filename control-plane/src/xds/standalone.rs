// SPDX-License-Identifier: Apache-2.0
//! Standalone mode: resources for Envoys that have no other control plane.
//!
//! ```text
//! Written ─check─> Config ─┐
//!              filter code ┴─> Standalone ── hosts ──> CDS, EDS, LDS, RDS, ECDS
//! ```
//!
//! Versions are hashes of the content, so that a server that restarts sends nothing that its
//! Envoys have already.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use prost::Message;
use xxhash_rust::xxh64::xxh64;

use super::types;
use crate::snapshot::Resource;

mod clusters;
mod code;
mod config;
mod endpoints;
mod extension;
mod listeners;
mod protobuf;
mod routes;
#[cfg(test)]
mod tests;
mod written;

pub use code::{Code, CodeError};
pub use config::{Config, Error, Listener};
pub use written::Written;

/// Where the chosen host stands in a request. Also the wire form of the Kubernetes Gateway API's
/// endpoint pickers.
const DESTINATION_HEADER: &str = "x-gateway-destination-endpoint";

/// Name of the filter in listeners and of its ECDS resource.
const FILTER: &str = "weir";

/// Resources of several types, as a `Snapshot` holds them.
pub type ResourcesByType = BTreeMap<&'static str, Arc<BTreeMap<String, Resource>>>;

/// A cluster and its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterHosts {
    /// As configured in weir-control.
    pub name: String,
    /// In any order.
    pub hosts: Vec<(SocketAddr, Health)>,
}

/// What Envoy's own policies may do with a host. The filter's choice does not depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Health {
    /// Takes requests.
    Up,
    /// Finishes what it has.
    Draining,
    /// Takes none.
    Down,
}

/// Everything but the hosts, encoded once.
#[derive(Clone, Debug)]
pub struct Standalone {
    fixed: ResourcesByType,
}

impl Standalone {
    /// Prepares the resources of `clusters` and of the configured listeners.
    pub fn new<'a>(
        config: &Config,
        code: Code,
        clusters: impl IntoIterator<Item = &'a str> + Clone,
    ) -> Self {
        let plugin = extension::plugin_configuration(config, clusters.clone());
        let of_listeners = |one: fn(&Listener) -> Resource| {
            config
                .listeners
                .iter()
                .map(|listener| (listener.name.clone(), one(listener)))
                .collect()
        };
        let clusters = clusters
            .into_iter()
            .map(|name| (name.to_owned(), encode(&clusters::cluster(config, name))));
        let extension = encode(&extension::extension(code, plugin.to_string()));
        let fixed: [(_, BTreeMap<_, _>); 4] = [
            (types::CLUSTER, clusters.collect()),
            (
                types::LISTENER,
                of_listeners(|listener| encode(&listeners::listener(listener))),
            ),
            (
                types::ROUTE,
                of_listeners(|listener| encode(&routes::routes(listener))),
            ),
            (types::EXTENSION, [(FILTER.to_owned(), extension)].into()),
        ];
        Self {
            fixed: fixed
                .into_iter()
                .map(|(r#type, resources)| (r#type, Arc::new(resources)))
                .collect(),
        }
    }

    /// Names of a type's resources. Those of endpoints are the clusters'.
    pub fn names(&self, type_url: &str) -> impl Iterator<Item = &String> {
        self.fixed
            .get(type_url)
            .into_iter()
            .flat_map(|all| all.keys())
    }

    /// All resources. Only the endpoints depend on `clusters`.
    pub fn resources(&self, clusters: &[ClusterHosts]) -> ResourcesByType {
        let endpoints = clusters
            .iter()
            .map(|cluster| (cluster.name.clone(), encode(&endpoints::endpoints(cluster))))
            .collect();
        let mut resources = self.fixed.clone();
        resources.insert(types::ENDPOINTS, Arc::new(endpoints));
        resources
    }
}

fn encode(message: &impl Message) -> Resource {
    let body = message.encode_to_vec();
    Resource {
        version: format!("{:016x}", xxh64(&body, 0)).into(),
        body: body.into(),
    }
}
