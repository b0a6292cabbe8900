// SPDX-License-Identifier: Apache-2.0
//! What sidecars are started with: static, and the same for every way but for what makes the way.
//!
//! The listener, the route and the limits are those of `envoy-config/static/envoy.yaml`.

pub mod clusters;
pub mod filters;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use serde_json::{Value, json};
use weir_stage::bootstrap::retry_policy;

/// The name of the cluster of hosts, here and in weir-control.
pub const HOSTS: &str = "rules";

/// Set by whoever chooses: `ip:port[,ip:port…]`.
pub const DESTINATION: &str = "x-gateway-destination-endpoint";

const FREE_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A listener on a free port whose requests pass `filters` and go to the cluster [`HOSTS`].
pub fn bootstrap(node: &str, mut filters: Vec<Value>, clusters: Vec<Value>) -> Value {
    filters.push(filters::router());
    json!({
        "node": {"id": node, "cluster": "callers"},
        "admin": {"address": address(FREE_PORT)},
        "stats_config": {"stats_tags": [{
            "tag_name": "reason",
            "regex": r"(?:^|\.)wasmcustom\.weir_.*?(;\.;reason=\.=(.*?);\.;)",
        }]},
        // The dynamic module's metrics are called as those of the module of WebAssembly.
        "layered_runtime": {"layers": [{"name": "static", "static_layer": {
            "envoy.reloadable_features.dynamic_modules_strip_custom_stat_prefix": true,
        }}]},
        "static_resources": {"listeners": [listener(filters)], "clusters": clusters},
    })
}

/// The same, whose route makes a hash of this header.
pub fn hashed_by(mut bootstrap: Value, header: &str) -> Value {
    const ROUTE: &str = "/static_resources/listeners/0/filter_chains/0/filters/0/typed_config/route_config\
                         /virtual_hosts/0/routes/0/route";
    if let Some(route) = bootstrap.pointer_mut(ROUTE) {
        route["hash_policy"] = json!([{"header": {"header_name": header}}]);
    }
    bootstrap
}

fn listener(filters: Vec<Value>) -> Value {
    json!({
        "name": "caller",
        "address": address(FREE_PORT),
        "filter_chains": [{"filters": [{
            "name": "envoy.filters.network.http_connection_manager",
            "typed_config": {
                "@type": "type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager",
                "stat_prefix": "caller",
                "request_timeout": "300s",
                "stream_idle_timeout": "300s",
                "server_header_transformation": "PASS_THROUGH",
                "use_remote_address": true,
                "skip_xff_append": true,
                "http_filters": filters,
                "route_config": {"name": "caller", "virtual_hosts": [{
                    "name": "all",
                    "domains": ["*"],
                    "routes": [{"match": {"prefix": "/"}, "route": route()}],
                }]},
            },
        }]}],
    })
}

fn route() -> Value {
    json!({
        "cluster": HOSTS,
        "timeout": "300s",
        "retry_policy": retry_policy(),
    })
}

fn address(address: SocketAddr) -> Value {
    json!({"socket_address": {
        "address": address.ip().to_string(),
        "port_value": address.port(),
    }})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_route_hashes_the_header() {
        let hashed = hashed_by(bootstrap("s", vec![], vec![]), "x-weir-key");
        assert!(hashed.to_string().contains(r#""header_name":"x-weir-key""#));
    }
}
