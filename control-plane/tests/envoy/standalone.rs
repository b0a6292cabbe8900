// SPDX-License-Identifier: Apache-2.0
//! A sidecar that has nothing but the standalone bootstrap.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use envoy_types::pb::envoy::config::cluster::v3::Cluster;
use envoy_types::pb::envoy::config::core::v3::{HeaderValue, HeaderValueOption};
use envoy_types::pb::envoy::config::route::v3::RouteConfiguration;
use envoy_types::pb::google::protobuf::Duration;
use prost::Message;
use weir_control::config::DiscoveryLimits;
use weir_control::standalone::{Code, Standalone, Written};
use weir_control::xds::types;
use weir_fleet::clients::ClientEvent;
use weir_fleet::snapshot::Resource;
use weir_fleet::standalone::{ClusterHosts, Health, ResourcesByType, Standalone as _};

use crate::control::{Control, accepted};
use crate::sidecar::Sidecar;
use crate::tools::{self, shell};
use crate::{hosts, http};

const ANY_PORT: &str = "127.0.0.1:0";

/// A discovery server with these resources.
async fn serve(address: SocketAddr, resources: ResourcesByType) -> Control {
    Control::start(address, resources, DiscoveryLimits::for_proxies(100)).await
}

/// The resources that weir-control would serve for these hosts, made anew as after a restart.
fn resources(hosts: &[SocketAddr]) -> ResourcesByType {
    let filter = tools::filter();
    let field = shell::field(&filter);
    let yaml = format!(
        "filter: {{ {field}: {filter:?}, config: {{ trust: any }} }}\n\
         listeners: [ {{ name: egress, address: {ANY_PORT:?}, cluster: rules }} ]"
    );
    let written: Written = serde_saphyr::from_str(&yaml).unwrap();
    let config = written.check(&["rules"]).unwrap();
    let code = Code::load(&config, Path::new("")).unwrap();
    let hosts = hosts.iter().map(|address| (*address, Health::Up)).collect();
    let rules = ClusterHosts {
        name: "rules".to_owned(),
        hosts,
    };
    Standalone::new(&config, code, ["rules"]).resources(&[rules])
}

async fn sidecar(control: SocketAddr) -> Sidecar {
    let port = format!("port_value: {}", control.port());
    let replace = [
        ("port_value: 18000", &*port),
        ("port_value: 9901", "port_value: 0"),
    ];
    Sidecar::start(&tools::envoy_config("standalone/bootstrap.yaml", &replace)).await
}

async fn wait_for_host(sidecar: &Sidecar, host: SocketAddr) {
    let line = format!("rules::{host}::");
    let known = async |sidecar: &Sidecar| {
        sidecar
            .page("/clusters")
            .await?
            .contains(&line)
            .then_some(())
    };
    sidecar.wait(&line, known).await;
}

#[tokio::test]
async fn a_sidecar_gets_all_it_needs_and_a_host_that_joins() {
    let (first, second) = (hosts::start().await, hosts::start().await);
    let control = serve(ANY_PORT.parse().unwrap(), resources(&[first])).await;
    let sidecar = sidecar(control.address).await;
    wait_for_host(&sidecar, first).await;
    let dump = sidecar.page("/config_dump?include_eds").await.unwrap();
    for expected in [
        "override_host",
        "x-gateway-destination-endpoint",
        "previous_hosts",
        "\"egress\"",
        "\"weir-attempt\"",
    ] {
        assert!(dump.contains(expected), "no {expected} in {dump}");
    }

    control.publish(resources(&[first, second]));
    wait_for_host(&sidecar, second).await;
    assert_eq!(
        control.sent(),
        7,
        "one of each type, of extensions two, then the endpoints again"
    );

    let listener = sidecar.listener("egress").await;
    let (status, body) = http::get(listener, "/").await.unwrap();
    assert_eq!(status, 200, "{body}");
    assert!(!body.contains("x-gateway-destination-endpoint"), "{body}");
    control.stop().await;
}

/// The filter's part is played by the route here, which can add a header before the host is picked.
#[tokio::test]
async fn the_host_in_the_header_gets_the_request_and_not_the_header() {
    let all = [
        hosts::start().await,
        hosts::start().await,
        hosts::start().await,
    ];
    let mut resources = resources(&all);
    let unknown_then_second = format!("127.0.0.1:1,{}", all[1]);
    let routes = &resources[types::ROUTE]["egress"];
    let mut routes = RouteConfiguration::decode(routes.body.clone()).unwrap();
    routes.request_headers_to_add.push(HeaderValueOption {
        header: Some(HeaderValue {
            key: "x-gateway-destination-endpoint".to_owned(),
            value: unknown_then_second,
            ..Default::default()
        }),
        ..Default::default()
    });
    let routes = Resource {
        version: "1".into(),
        body: routes.encode_to_vec().into(),
    };
    resources.insert(
        types::ROUTE,
        Arc::new([("egress".to_owned(), routes)].into()),
    );

    let control = serve(ANY_PORT.parse().unwrap(), resources).await;
    let sidecar = sidecar(control.address).await;
    for host in all {
        wait_for_host(&sidecar, host).await;
    }
    let listener = sidecar.listener("egress").await;
    for _ in 0..10 {
        let (status, body) = http::get(listener, "/").await.unwrap();
        assert_eq!(
            (status, body.lines().next()),
            (200, Some(&*all[1].to_string()))
        );
        assert!(!body.contains("x-gateway-destination-endpoint"), "{body}");
    }
    control.stop().await;
}

#[tokio::test]
async fn a_resource_that_envoy_refuses_is_told_with_the_reason() {
    let host = hosts::start().await;
    let good = resources(&[host]);
    let mut control = serve(ANY_PORT.parse().unwrap(), good.clone()).await;
    let sidecar = sidecar(control.address).await;
    control.until(accepted(types::CLUSTER)).await;

    let timeout = Some(Duration {
        seconds: 0,
        nanos: 0,
    });
    let cluster = Cluster {
        name: "bad".to_owned(),
        connect_timeout: timeout,
        ..Default::default()
    };
    let cluster = Resource {
        version: "1".into(),
        body: cluster.encode_to_vec().into(),
    };
    let mut clusters = (*good[types::CLUSTER]).clone();
    clusters.insert("bad".to_owned(), cluster);
    let mut bad = good;
    bad.insert(types::CLUSTER, Arc::new(clusters));
    control.publish(bad);
    let reason = control.until(|event| match event {
        ClientEvent::Nacked { reason, .. } => Some(reason.clone()),
        _ => None,
    });
    let reason = reason.await;
    assert!(
        reason.contains("bad") && reason.contains("ConnectTimeout"),
        "{reason}"
    );
    wait_for_host(&sidecar, host).await;
    control.stop().await;
}

#[tokio::test]
async fn after_a_restart_of_the_server_nothing_is_sent_that_envoy_has() {
    let (first, second) = (hosts::start().await, hosts::start().await);
    let control = serve(ANY_PORT.parse().unwrap(), resources(&[first])).await;
    let address = control.address;
    let sidecar = sidecar(address).await;
    // Not by what it accepts: while it compiles the filter it answers no ping, so on a busy machine its stream ends,
    // and of the next one it asks for nothing that it has.
    sidecar.listener("egress").await;
    wait_for_host(&sidecar, first).await;
    control.stop().await;

    let mut control = serve(address, resources(&[first])).await;
    assert_eq!(
        control.until(accepted(types::LISTENER)).await,
        0,
        "the answer to the wildcard"
    );
    assert_eq!(control.sent(), 0);
    control.publish(resources(&[first, second]));
    assert_eq!(control.until(accepted(types::ENDPOINTS)).await, 1);
    wait_for_host(&sidecar, second).await;
    assert_eq!(control.sent(), 1);
    control.stop().await;
}
