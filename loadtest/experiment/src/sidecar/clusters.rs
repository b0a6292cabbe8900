// SPDX-License-Identifier: Apache-2.0
//! Where a sidecar's requests go, and whom it asks.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::{DESTINATION, HOSTS, address};

/// Envoy's own limits must not decide anything here.
const NO_LIMIT: u32 = 100_000;

/// Hosts that Envoy chooses from by itself.
pub fn least_request(hosts: &[SocketAddr]) -> Value {
    let mut cluster = cluster(HOSTS, hosts);
    cluster["lb_policy"] = json!("LEAST_REQUEST");
    cluster
}

/// Hosts that Envoy chooses from by a hash that the route has to make.
pub fn ring_hash(hosts: &[SocketAddr]) -> Value {
    let mut cluster = cluster(HOSTS, hosts);
    cluster["lb_policy"] = json!("RING_HASH");
    cluster
}

/// [`ring_hash`], where no host has more than so many percent of the mean of requests in progress.
pub fn bounded_ring_hash(hosts: &[SocketAddr], percent: u32) -> Value {
    let mut cluster = ring_hash(hosts);
    cluster["common_lb_config"] =
        json!({"consistent_hashing_lb_config": {"hash_balance_factor": percent}});
    cluster
}

/// As [`ring_hash`], by a table that is spread more evenly.
pub fn maglev(hosts: &[SocketAddr]) -> Value {
    let mut cluster = cluster(HOSTS, hosts);
    cluster["lb_policy"] = json!("MAGLEV");
    cluster
}

/// Hosts that Envoy weighs by what they say of their load in answers (ORCA): from `blackout` after a host's first
/// on, anew every `period`.
pub fn weighted(hosts: &[SocketAddr], blackout: &str, period: &str) -> Value {
    let mut cluster = cluster(HOSTS, hosts);
    cluster["load_balancing_policy"] = json!({"policies": [{"typed_extension_config": {
        "name": "envoy.load_balancing_policies.client_side_weighted_round_robin",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.client_side_weighted_round_robin.v3.ClientSideWeightedRoundRobin",
            "blackout_period": blackout,
            "weight_update_period": period,
        },
    }}]});
    cluster
}

/// Hosts of which the header [`DESTINATION`] names one. It goes on to the host, which can tell it.
pub fn named(hosts: &[SocketAddr]) -> Value {
    let mut cluster = cluster(HOSTS, hosts);
    cluster["load_balancing_policy"] = json!({"policies": [{"typed_extension_config": {
        "name": "envoy.load_balancing_policies.override_host",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.override_host.v3.OverrideHost",
            "override_host_sources": [{"header": DESTINATION}],
            "fallback_policy": {"policies": [{"typed_extension_config": {
                "name": "envoy.load_balancing_policies.least_request",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.load_balancing_policies.least_request.v3.LeastRequest",
                },
            }}]},
        },
    }}]});
    cluster
}

/// [`named`], where the header goes no further than this sidecar: as Weir is shipped.
pub fn named_and_stripped(hosts: &[SocketAddr]) -> Value {
    let mut cluster = named(hosts);
    cluster["typed_extension_protocol_options"] = protocol(json!({
        "explicit_http_config": {"http_protocol_options": {}},
        "http_filters": [
            {
                "name": "envoy.filters.http.header_mutation",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.http.header_mutation.v3.HeaderMutation",
                    "mutations": {"request_mutations": [{"remove": DESTINATION}]},
                },
            },
            {
                "name": "envoy.filters.http.upstream_codec",
                "typed_config": {
                    "@type": "type.googleapis.com/envoy.extensions.filters.http.upstream_codec.v3.UpstreamCodec",
                },
            },
        ],
    }));
    cluster
}

/// A server that the sidecar itself talks to.
pub fn grpc(name: &str, server: SocketAddr) -> Value {
    let mut cluster = cluster(name, &[server]);
    cluster["typed_extension_protocol_options"] = protocol(json!({
        "explicit_http_config": {"http2_protocol_options": {
            "connection_keepalive": {"interval": "5s", "timeout": "2s"},
        }},
    }));
    cluster
}

fn protocol(mut options: Value) -> Value {
    const NAME: &str = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions";
    options["@type"] = json!(format!("type.googleapis.com/{NAME}"));
    json!({NAME: options})
}

fn cluster(name: &str, members: &[SocketAddr]) -> Value {
    let endpoint = |member: &SocketAddr| json!({"endpoint": {"address": address(*member)}});
    let endpoints: Vec<Value> = members.iter().map(endpoint).collect();
    json!({
        "name": name,
        "type": "STATIC",
        "connect_timeout": "1s",
        "circuit_breakers": {"thresholds": [{
            "max_connections": NO_LIMIT,
            "max_pending_requests": NO_LIMIT,
            "max_requests": NO_LIMIT,
            "max_retries": NO_LIMIT,
        }]},
        "load_assignment": {"cluster_name": name, "endpoints": [{"lb_endpoints": endpoints}]},
    })
}
