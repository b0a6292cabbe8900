// SPDX-License-Identifier: Apache-2.0
//! Types of resources, and the order in which they are served.

pub use weir_fleet::types::{CLUSTER, ENDPOINTS, EXTENSION, LISTENER, ROUTE};

/// The order in which one stream is served. Other types come after these.
pub(crate) const ORDER: [&str; 5] = [CLUSTER, ENDPOINTS, LISTENER, ROUTE, EXTENSION];
/// What routes point to.
pub(super) const CLUSTERS: &[&str] = &[CLUSTER, ENDPOINTS];
/// What points to clusters.
pub(super) const ROUTING: &[&str] = &[LISTENER, ROUTE];

/// The type belongs to the filter's tables.
pub(super) fn is_weir(type_url: &str) -> bool {
    type_url.starts_with("type.googleapis.com/weir.v1.")
}
