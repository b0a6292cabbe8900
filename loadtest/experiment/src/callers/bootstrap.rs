// SPDX-License-Identifier: Apache-2.0
//! The configuration of an Envoy without weir-control.

use std::net::SocketAddr;

use serde_json::{Value, json};
use weir_stage::bootstrap::retry_policy;

use crate::callers::balancer::{Balancer, KEY};

/// Envoy's own limits must not decide anything here.
const NO_LIMIT: u32 = 100_000;

/// Envoy alone: everything is static. `filters` come before the router.
pub(crate) fn alone(
    node: &str,
    balancer: Balancer,
    hosts: &[SocketAddr],
    timeout: &str,
    filters: &[Value],
) -> Value {
    let listener = json!({
        "name": "caller",
        "address": loopback(0),
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": connection_manager(balancer, timeout, filters),
        }]}],
    });
    json!({
        "node": {"id": node, "cluster": "callers"},
        "admin": {"address": loopback(0)},
        "static_resources": {"listeners": [listener], "clusters": [cluster(balancer, hosts)]},
    })
}

fn connection_manager(balancer: Balancer, timeout: &str, filters: &[Value]) -> Value {
    let mut action = json!({
        "cluster": "rules",
        "timeout": timeout,
        "retry_policy": retry_policy(),
    });
    if balancer.hashes() {
        action["hash_policy"] = json!([{"header": {"header_name": KEY}}]);
    }
    let router = json!({
        "name": "envoy.filters.http.router",
        "typed_config": {"@type": "type.googleapis.com/envoy.extensions.filters.http.router.v3.Router"},
    });
    let own = balancer.filter();
    let filters: Vec<&Value> = filters.iter().chain(&own).chain([&router]).collect();
    json!({
        "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
        "stat_prefix": "caller",
        "route_config": {"name": "caller", "virtual_hosts": [{
            "name": "all",
            "domains": ["*"],
            "routes": [{"match": {"prefix": "/"}, "route": action}],
        }]},
        "http_filters": filters,
    })
}

fn cluster(balancer: Balancer, hosts: &[SocketAddr]) -> Value {
    let mut cluster = json!({
        "name": "rules",
        "type": "STATIC",
        "connect_timeout": "1s",
        "load_assignment": assignment("rules", balancer, hosts),
        "circuit_breakers": {"thresholds": [{
            "max_connections": NO_LIMIT,
            "max_pending_requests": NO_LIMIT,
            "max_requests": NO_LIMIT,
            "max_retries": NO_LIMIT,
        }]},
    });
    for (field, value) in balancer.policy() {
        cluster[field] = value;
    }
    cluster
}

fn assignment(cluster: &str, balancer: Balancer, addresses: &[SocketAddr]) -> Value {
    let endpoint = |(host, address): (usize, &SocketAddr)| {
        let mut endpoint = json!({"endpoint": {"address": {"socket_address": {
            "address": address.ip().to_string(),
            "port_value": address.port(),
        }}}});
        if let Some(metadata) = balancer.metadata(host, addresses.len()) {
            endpoint["metadata"] = metadata;
        }
        endpoint
    };
    let endpoints: Vec<Value> = addresses.iter().enumerate().map(endpoint).collect();
    json!({"cluster_name": cluster, "endpoints": [{"lb_endpoints": endpoints}]})
}

fn loopback(port: u16) -> Value {
    json!({"socket_address": {"address": "127.0.0.1", "port_value": port}})
}
