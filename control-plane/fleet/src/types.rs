// SPDX-License-Identifier: Apache-2.0
//! Type URLs of Envoy's own resources.

/// Clusters (CDS).
pub const CLUSTER: &str = "type.googleapis.com/envoy.config.cluster.v3.Cluster";
/// Endpoints of a cluster (EDS).
pub const ENDPOINTS: &str = "type.googleapis.com/envoy.config.endpoint.v3.ClusterLoadAssignment";
/// Listeners (LDS).
pub const LISTENER: &str = "type.googleapis.com/envoy.config.listener.v3.Listener";
/// Routes of a listener (RDS).
pub const ROUTE: &str = "type.googleapis.com/envoy.config.route.v3.RouteConfiguration";
/// Configurations of HTTP filters (ECDS).
pub const EXTENSION: &str = "type.googleapis.com/envoy.config.core.v3.TypedExtensionConfig";
