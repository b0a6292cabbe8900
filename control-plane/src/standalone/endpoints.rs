// SPDX-License-Identifier: Apache-2.0
//! EDS: the hosts of a cluster.

use envoy_types::pb::envoy::config::core::v3::HealthStatus;
use envoy_types::pb::envoy::config::endpoint::v3 as endpoint;

use weir_fleet::standalone::{ClusterHosts, Health};

use super::protobuf;

/// Sorted by address, so that the same hosts in another order are the same version.
pub(super) fn endpoints(cluster: &ClusterHosts) -> endpoint::ClusterLoadAssignment {
    let mut hosts = cluster.hosts.clone();
    hosts.sort_by_key(|(address, _)| *address);
    let host = |(address, health)| {
        let endpoint = endpoint::Endpoint {
            address: protobuf::address(address),
            ..Default::default()
        };
        endpoint::LbEndpoint {
            health_status: status(health).into(),
            host_identifier: Some(endpoint::lb_endpoint::HostIdentifier::Endpoint(endpoint)),
            ..Default::default()
        }
    };
    let locality = endpoint::LocalityLbEndpoints {
        lb_endpoints: hosts.into_iter().map(host).collect(),
        ..Default::default()
    };
    endpoint::ClusterLoadAssignment {
        cluster_name: cluster.name.clone(),
        endpoints: vec![locality],
        ..Default::default()
    }
}

fn status(health: Health) -> HealthStatus {
    match health {
        Health::Up => HealthStatus::Healthy,
        Health::Draining => HealthStatus::Draining,
        Health::Down => HealthStatus::Unhealthy,
    }
}
