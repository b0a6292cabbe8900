// SPDX-License-Identifier: Apache-2.0
//! The caller's zone has no room left, and has some again; Envoy's own zone-aware routing beside.

use std::net::SocketAddr;

use serde_json::{Value, json};

use crate::client::{Answer, keyed};
use crate::hosts::Host;
use crate::load::{Load, assert_all_ok};
use crate::sidecar::Sidecar;
use crate::world::{Plan, ZONE};

/// A host of two cores in this zone.
fn row(host: &Host, zone: &str) -> Value {
    json!({"address": host.address, "zone": zone, "capacity_millicores": 2000})
}

/// An Envoy that chooses by itself, with zone-aware routing
/// (envoyproxy.io/docs/envoy/latest/intro/arch_overview/upstream/load_balancing/zone_aware): as many of its kind are in
/// each zone as there are hosts, so that each zone is to keep its own requests.
async fn zone_aware(near: SocketAddr, far: SocketAddr) -> Sidecar {
    let of = |name: &str, near: SocketAddr, far: SocketAddr| {
        let zone = |zone: &str, address: SocketAddr| {
            json!({ "locality": { "zone": zone }, "lb_endpoints": [ { "endpoint": { "address": { "socket_address": {
                "address": address.ip(), "port_value": address.port(),
            } } } } ] })
        };
        json!({
            "name": name,
            "type": "STATIC",
            "lb_policy": "LEAST_REQUEST",
            "common_lb_config": { "zone_aware_lb_config": { "min_cluster_size": 1 } },
            "load_assignment": { "cluster_name": name, "endpoints": [zone(ZONE, near), zone("far", far)] },
        })
    };
    let kind = |name: &str| format!("type.googleapis.com/envoy.extensions.filters.{name}");
    let manager = json!({
        "@type": kind("network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "own",
        "route_config": { "virtual_hosts": [ { "name": "all", "domains": ["*"], "routes": [
            { "match": { "prefix": "/" }, "route": { "cluster": "hosts" } },
        ] } ] },
        "http_filters": [ { "name": "router", "typed_config": { "@type": kind("http.router.v3.Router") } } ],
    });
    let anywhere = json!({ "socket_address": { "address": "127.0.0.1", "port_value": 0 } });
    let callers = of(
        "callers",
        "127.0.0.1:1".parse().unwrap(),
        "127.0.0.1:2".parse().unwrap(),
    );
    let config = json!({
        "node": { "id": "own", "cluster": "callers" },
        "admin": { "address": anywhere },
        "cluster_manager": { "local_cluster_name": "callers" },
        "static_resources": {
            "clusters": [callers, of("hosts", near, far)],
            "listeners": [ { "name": "egress", "address": anywhere, "filter_chains": [
                { "filters": [ { "name": "http", "typed_config": manager } ] },
            ] } ],
        },
    });
    let options = ["--disable-hot-restart", "--service-zone", ZONE].map(str::to_owned);
    Sidecar::launch(&config.to_string(), 1, &options).await
}

fn went_to(answers: &[Answer], host: SocketAddr) -> bool {
    answers.iter().all(|answer| answer.host == Some(host))
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_stay_in_the_callers_zone_until_it_is_busy_and_come_back() {
    let (near, far) = (Host::start().await, Host::start().await);
    let (own_near, own_far) = (Host::start().await, Host::start().await);
    let own = zone_aware(own_near.address, own_far.address).await;
    let beside = Load::start(own.listener("egress").await, 50, keyed);
    let zones = json!({"clusters": {"rules": {
        "scrape": {"interval": "200ms"}, "policy": {"crossing": "50ms"},
    }}});
    let rows = vec![row(&near, ZONE), row(&far, "far")];
    let world = Plan::hosts(rows).with(zones).start().await;
    let crossings = "weir_crossings_total";
    let load = Load::start(world.egress, 50, keyed);
    load.next(100).await;
    let answers = load.since(0);
    assert_all_ok(&answers);
    assert!(went_to(&answers, near.address), "{answers:?}");
    assert_eq!(world.envoy_metric(crossings).await, Some(0.0));

    for near in [&near, &own_near] {
        near.says(42, 40);
    }
    let begun = answers.len();
    let crossed = |answers: &[Answer]| {
        let to_far = |answer: &&Answer| answer.host == Some(far.address);
        answers.iter().filter(to_far).count() >= 100
    };
    assert_all_ok(
        &load
            .until("requests in the other zone", begun, crossed)
            .await,
    );
    world.until_envoy(crossings, |count| count >= 100.0).await;

    // Envoy goes by shares of hosts and callers, whatever waits there.
    beside.next(100).await;
    assert_all_ok(&beside.finish().await);
    assert!(own_near.served() >= 200, "{}", own_near.served());
    assert_eq!(own_far.served(), 0);

    near.says(0, 0);
    let back = async || {
        let answers = load.next(20).await;
        went_to(&answers, near.address).then_some(())
    };
    world.until("requests in the own zone again", back).await;
    assert_all_ok(&load.finish().await);
}
