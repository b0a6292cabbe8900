// SPDX-License-Identifier: Apache-2.0
//! A host that tells its load and its keys, and sidecars that say what they think of a table.

use std::net::SocketAddr;

use axum::Router;
use axum::routing::get;
use envoy_types::pb::envoy::config::core::v3::Node;
use envoy_types::pb::envoy::service::discovery::v3 as discovery;
use envoy_types::pb::google::rpc;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use weir_tables::HOST_TABLE_TYPE;
use weir_tables::v1::reports_client::ReportsClient;
use weir_tables::v1::{ClusterRecord, HostRecord, RankCount, Report, VmRecord};

use discovery::DeltaDiscoveryRequest;
use discovery::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;

const LOAD: &str = "weir_host_in_progress 7\nweir_host_queued{priority=\"16\"} 4\n";
const KEYS: &str = r#"{ "version": 1, "epoch": 1, "reset": true, "added": ["a", "b"] }"#;
const KEPT: &str = r#"{ "version": 1, "epoch": 1 }"#;

/// Where it answers.
pub(crate) async fn host() -> SocketAddr {
    let cache = async |uri: axum::http::Uri| match uri.query() {
        None => KEYS,
        Some(_) => KEPT,
    };
    let pages = Router::new()
        .route("/metrics", get(async || LOAD))
        .route("/cache", get(cache));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, pages).await });
    address
}

/// Subscribes to the table of `rules`, and accepts it or refuses it for that reason.
pub(crate) async fn sidecar(xds: SocketAddr, name: &str, refusal: Option<&'static str>) {
    let (requests, outbound) = mpsc::channel(8);
    let first = DeltaDiscoveryRequest {
        node: Some(Node {
            id: name.to_owned(),
            ..Default::default()
        }),
        type_url: HOST_TABLE_TYPE.to_owned(),
        resource_names_subscribe: vec!["rules".to_owned()],
        ..Default::default()
    };
    requests.send(first).await.unwrap();
    let url = format!("http://{xds}");
    let mut client = AggregatedDiscoveryServiceClient::connect(url)
        .await
        .unwrap();
    let answer = client.delta_aggregated_resources(ReceiverStream::new(outbound));
    let mut responses = answer.await.unwrap().into_inner();
    tokio::spawn(async move {
        while let Ok(Some(response)) = responses.message().await {
            let refuse = |reason: &str| rpc::Status {
                message: reason.to_owned(),
                ..Default::default()
            };
            let answer = DeltaDiscoveryRequest {
                type_url: response.type_url,
                response_nonce: response.nonce,
                error_detail: refusal.map(refuse),
                ..Default::default()
            };
            // weir-control may have ended.
            let _ = requests.send(answer).await;
        }
    });
}

/// Says that of `offered` requests of class 16 for `rules` so many got `host`; returns when that was taken.
pub(crate) async fn report(xds: SocketAddr, host: &str, offered: u64, admitted: u64) {
    let counts = |count| {
        vec![RankCount {
            rank: 16 * 128,
            count,
        }]
    };
    // Of a proxy that nobody knows the first record is where counting begins.
    let records = [(0, 0), (offered, admitted)].map(|(offered, admitted)| VmRecord {
        epoch: 1,
        deadline_ns: u64::MAX,
        published_ns: 1 + offered,
        clusters: vec![ClusterRecord {
            cluster: "rules".to_owned(),
            offered: counts(offered),
            shed: counts(offered - admitted),
            hosts: vec![HostRecord {
                address: host.to_owned(),
                admitted: counts(admitted),
                ok: admitted,
                ..Default::default()
            }],
            ..Default::default()
        }],
        ..Default::default()
    });
    let reports = records.map(|record| Report {
        proxy: "caller-1".to_owned(),
        records: vec![record],
        changes: false,
    });
    let mut client = ReportsClient::connect(format!("http://{xds}"))
        .await
        .unwrap();
    let stream = client.stream(tokio_stream::iter(reports)).await.unwrap();
    let mut answers = stream.into_inner();
    while let Ok(Some(_)) = answers.message().await {}
}
