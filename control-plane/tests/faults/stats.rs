// SPDX-License-Identifier: Apache-2.0
//! Where a decision's reason can be read.

use std::net::SocketAddr;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use weirctl::capture::{Asked, capture};

use crate::client::{Caller, keyed};
use crate::load::assert_all_ok;
use crate::sidecar::Sidecar;
use crate::tools;
use crate::world::{Plan, sum};

#[tokio::test(flavor = "multi_thread")]
async fn reasons_are_a_label_in_the_metrics_of_a_standalone_sidecar() {
    let world = Plan::workers(2, &[]).start().await;
    let known = async || {
        let caller = world.caller();
        assert_all_ok(&[caller.send("/", &keyed(0)).await]);
        world
            .envoy_metric("weir_decisions_total{reason=\"known_cached\"}")
            .await
    };
    world.until("a decision by cache", known).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reasons_are_in_metrics_access_log_and_spans_of_a_static_configuration() {
    let world = Plan::workers(2, &[]).start().await;
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("access.log");
    let access_log = include_str!("../../../envoy-config/static/access-log.yaml");
    let access_log = access_log.replace("/dev/stdout", log.to_str().unwrap());
    let (collector, mut spans) = collector().await;
    let tracing = include_str!("../../../envoy-config/static/tracing.yaml");
    let tracing = tracing.replace(
        "random_sampling: { value: 1 }",
        "random_sampling: { value: 100 }",
    );
    let seen = format!("stat_prefix: egress\n{access_log}{tracing}");
    let otlp = format!(
        "  clusters:
    - name: otlp
      type: STATIC
      load_assignment:
        cluster_name: otlp
        endpoints:
          - lb_endpoints:
              - endpoint: {{ address: {{ socket_address: {{ address: 127.0.0.1, port_value: {} }} }} }}
    - name: rules\n",
        collector.port()
    );
    let port = |address: SocketAddr| format!("port_value: {} }}", address.port());
    let (xds, hosts) = (port(world.xds), world.addresses());
    let filter = tools::filter();
    let replace = [
        ("stat_prefix: egress", &*seen),
        ("  clusters:\n    - name: rules\n", &*otlp),
        ("id: sidecar-1", "id: sidecar-2"),
        ("/etc/weir/weir_filter.wasm", filter.to_str().unwrap()),
        ("port_value: 9901 }", "port_value: 0 }"),
        ("port_value: 15001 }", "port_value: 0 }"),
        ("port_value: 18000 }", &xds),
        ("port_value: 9001 }", &port(hosts[0])),
        ("port_value: 9002 }", &port(hosts[1])),
    ];
    let config = tools::envoy_config("static/envoy.yaml", &replace);
    let sidecar = Sidecar::start_with(&config, 2).await;
    let caller = Caller::new(sidecar.listener("egress").await);
    let seen = async |sidecar: &Sidecar| {
        assert_all_ok(&[caller.send("/", &keyed(0)).await]);
        let page = sidecar.page("/stats/prometheus").await?;
        let counted = sum(&page, "weir_decisions_total{reason=\"known_cached\"}").unwrap_or(0.0);
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        let known = |line: &str| line.contains("\"reason\":\"known_cached\"");
        (counted > 0.0 && log.lines().any(known)).then_some(())
    };
    sidecar.wait("the reason in metrics and log", seen).await;
    // It is still written to.
    let kept = folder.path().join("kept.log");
    let lines = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&kept, &lines).unwrap();
    let asked = Asked {
        logs: vec![kept],
        cluster: None,
        cores: 4,
        fetch: None,
        keep_names: true,
    };
    let captured = capture(&asked).unwrap();
    assert_eq!(captured.requests.len(), lines.lines().count());
    assert!(captured.requests.iter().all(|one| !one.key.is_empty()));
    assert_eq!(captured.report.without_host, 0);
    assert!(captured.report.run_mean_ms > 0.0);

    let spans = async {
        while let Some(span) = spans.recv().await {
            if ["weir.reason", "known_cached", "weir.host"]
                .iter()
                .all(|word| has(&span, word))
            {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(60), spans)
        .await
        .unwrap();
}

/// A span's text stands in its bytes as it is.
fn has(span: &[u8], word: &str) -> bool {
    span.windows(word.len()).any(|part| part == word.as_bytes())
}

/// Takes spans by OTLP.
async fn collector() -> (SocketAddr, mpsc::Receiver<Bytes>) {
    let (spans, received) = mpsc::channel(1000);
    let take = async move |body: Bytes| drop(spans.send(body).await);
    let router = Router::new().route("/v1/traces", post(take));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, router).await });
    (address, received)
}
