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
use std::sync::Arc;

use prost::Message;
use xxhash_rust::xxh64::xxh64;

use weir_fleet::snapshot::Resource;
use weir_fleet::standalone::{ClusterHosts, ResourcesByType};
use weir_fleet::types;

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

/// Name of the filter where it looks after each attempt at a host, in clusters, and of its ECDS resource.
const ATTEMPT: &str = "weir-attempt";

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
        let attempt = extension::attempt_configuration(&plugin);
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
        let extensions = [(FILTER, plugin), (ATTEMPT, attempt)].map(|(name, plugin)| {
            let extension = extension::extension(name, code.clone(), plugin.to_string());
            (name.to_owned(), encode(&extension))
        });
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
            (types::EXTENSION, extensions.into()),
        ];
        Self {
            fixed: fixed
                .into_iter()
                .map(|(r#type, resources)| (r#type, Arc::new(resources)))
                .collect(),
        }
    }
}

impl weir_fleet::standalone::Standalone for Standalone {
    fn names(&self, type_url: &str) -> Vec<String> {
        let fixed = self.fixed.get(type_url).into_iter();
        fixed.flat_map(|all| all.keys().cloned()).collect()
    }

    fn resources(&self, clusters: &[ClusterHosts]) -> ResourcesByType {
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
