// SPDX-License-Identifier: Apache-2.0
//! CDS: a cluster whose host is named by a request header.

use envoy_types::pb::envoy::config::cluster::v3 as cluster;
use envoy_types::pb::envoy::config::common::mutation_rules::v3::{HeaderMutation, header_mutation};
use envoy_types::pb::envoy::config::core::v3::{Http1ProtocolOptions, Http2ProtocolOptions};
use envoy_types::pb::envoy::extensions::filters::http::header_mutation::v3 as mutation;
use envoy_types::pb::envoy::extensions::filters::http::upstream_codec::v3::UpstreamCodec;
use envoy_types::pb::envoy::extensions::load_balancing_policies as policies;
use envoy_types::pb::envoy::extensions::upstreams::http::v3 as http;
use envoy_types::util::pack_any;
use prost::Name;

use super::config::{Config, Fallback, Protocol};
use super::extension::{discovered, filter};
use super::{ATTEMPT, DESTINATION_HEADER, protobuf};

pub(super) fn cluster(config: &Config, name: &str) -> cluster::Cluster {
    let eds = cluster::cluster::EdsClusterConfig {
        eds_config: protobuf::ads(),
        ..Default::default()
    };
    let r#type = cluster::cluster::DiscoveryType::Eds.into();
    cluster::Cluster {
        name: name.to_owned(),
        cluster_discovery_type: Some(cluster::cluster::ClusterDiscoveryType::Type(r#type)),
        eds_cluster_config: Some(eds),
        connect_timeout: protobuf::duration(config.connect_timeout),
        load_balancing_policy: Some(override_host(config.fallback)),
        circuit_breakers: Some(limits(config.max_requests)),
        typed_extension_protocol_options: [(
            http::HttpProtocolOptions::full_name(),
            pack_any(protocol_options(config.protocol)),
        )]
        .into(),
        ..Default::default()
    }
}

/// The host in the header, or the first in its list that the cluster knows; without one, the
/// fallback chooses. So no table, no filter and no weir-control all mean plain Envoy.
fn override_host(fallback: Fallback) -> cluster::LoadBalancingPolicy {
    use policies::override_host::v3::{OverrideHost, override_host::OverrideHostSource};
    let source = OverrideHostSource {
        header: DESTINATION_HEADER.to_owned(),
        metadata: None,
    };
    let fallback = match fallback {
        Fallback::LeastRequest => protobuf::extension(
            "envoy.load_balancing_policies.least_request",
            policies::least_request::v3::LeastRequest::default(),
        ),
        Fallback::RoundRobin => protobuf::extension(
            "envoy.load_balancing_policies.round_robin",
            policies::round_robin::v3::RoundRobin::default(),
        ),
        Fallback::Random => protobuf::extension(
            "envoy.load_balancing_policies.random",
            policies::random::v3::Random::default(),
        ),
    };
    let policy = |typed_extension_config| cluster::LoadBalancingPolicy {
        policies: vec![cluster::load_balancing_policy::Policy {
            typed_extension_config,
        }],
    };
    policy(protobuf::extension(
        "envoy.load_balancing_policies.override_host",
        OverrideHost {
            override_host_sources: vec![source],
            selected_host_key: None,
            fallback_policy: Some(policy(fallback)),
        },
    ))
}

/// Admission is Weir's: Envoy's default of 1,024 requests would refuse without regard to priority,
/// and its default of 3 concurrent retries would strand requests when a host dies.
fn limits(max: u32) -> cluster::CircuitBreakers {
    let max = protobuf::uint32(max);
    let thresholds = cluster::circuit_breakers::Thresholds {
        max_connections: max,
        max_pending_requests: max,
        max_requests: max,
        max_retries: max,
        ..Default::default()
    };
    cluster::CircuitBreakers {
        thresholds: vec![thresholds],
        ..Default::default()
    }
}

/// The destination header is taken off here, after the host is picked. Taken off on the route, it
/// would be gone before.
fn protocol_options(protocol: Protocol) -> http::HttpProtocolOptions {
    use http::http_protocol_options::explicit_http_config::ProtocolConfig;
    use http::http_protocol_options::{ExplicitHttpConfig, UpstreamProtocolOptions};
    let protocol = match protocol {
        Protocol::Http1 => ProtocolConfig::HttpProtocolOptions(Http1ProtocolOptions::default()),
        Protocol::H2 => ProtocolConfig::Http2ProtocolOptions(Http2ProtocolOptions::default()),
    };
    let protocol = ExplicitHttpConfig {
        protocol_config: Some(protocol),
    };
    let remove = header_mutation::Action::Remove(DESTINATION_HEADER.to_owned());
    let mutations = mutation::Mutations {
        request_mutations: vec![HeaderMutation {
            action: Some(remove),
        }],
        ..Default::default()
    };
    let remove = mutation::HeaderMutation {
        mutations: Some(mutations),
        ..Default::default()
    };
    http::HttpProtocolOptions {
        upstream_protocol_options: Some(UpstreamProtocolOptions::ExplicitHttpConfig(protocol)),
        http_filters: vec![
            discovered(ATTEMPT),
            filter("envoy.filters.http.header_mutation", pack_any(remove)),
            filter(
                "envoy.filters.http.upstream_codec",
                pack_any(UpstreamCodec {}),
            ),
        ],
        ..Default::default()
    }
}
