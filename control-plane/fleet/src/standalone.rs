// SPDX-License-Identifier: Apache-2.0
//! Resources for Envoys that have no other control plane: the seam to whoever encodes them.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use crate::snapshot::Resource;

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

/// Encodes Envoy's own resources.
pub trait Standalone: fmt::Debug + Send + Sync {
    /// Names of a type's resources. Those of endpoints are the clusters'.
    fn names(&self, type_url: &str) -> Vec<String>;

    /// All resources of these clusters.
    fn resources(&self, clusters: &[ClusterHosts]) -> ResourcesByType;
}
