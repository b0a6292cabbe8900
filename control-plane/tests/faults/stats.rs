// SPDX-License-Identifier: Apache-2.0
//! Where a decision's reason can be read.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use weirctl::capture::{Asked, capture};
use weirctl::collect::collect;

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
    let streams = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = streams.local_addr().unwrap().to_string();
    let stream = include_str!("../../../envoy-config/static/access-log-stream.yaml");
    let (_, stream) = stream.split_once("access_log:\n").unwrap();
    let access_log = access_log + &stream.replace("127.0.0.1:18100", &address);
    let streamed = folder.path().join("streamed.log");
    let mut file = File::create(&streamed).unwrap();
    let (stop, stopped) = oneshot::channel();
    let collecting = tokio::spawn(async move {
        let end = async { stopped.await.unwrap() };
        collect(streams, &mut file, u64::MAX, end).await
    });
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
    let sent = Cell::new(0);
    let text = |log: &Path| std::fs::read_to_string(log).unwrap_or_default();
    let seen = async |sidecar: &Sidecar| {
        assert_all_ok(&[caller.send("/", &keyed(0)).await]);
        sent.set(sent.get() + 1);
        let page = sidecar.page("/stats/prometheus").await?;
        let counted = sum(&page, "weir_decisions_total{reason=\"known_cached\"}").unwrap_or(0.0);
        let known = |line: &str| line.contains("\"reason\":\"known_cached\"");
        (counted > 0.0 && text(&log).lines().any(known)).then_some(())
    };
    sidecar.wait("the reason in metrics and log", seen).await;
    let whole = async |_: &Sidecar| {
        let lines = [&log, &streamed].map(|log| text(log).lines().count());
        (lines == [sent.get(); 2]).then_some(())
    };
    sidecar.wait("all requests in both logs", whole).await;
    let captured = |log: &Path| {
        let asked = Asked {
            logs: vec![log.to_owned()],
            cluster: None,
            cores: 4,
            fetch: None,
            keep_names: true,
        };
        let captured = capture(&asked).unwrap();
        assert_eq!(captured.requests.len(), sent.get());
        assert!(captured.requests.iter().all(|one| !one.key.is_empty()));
        assert_eq!(captured.report.without_host, 0);
        assert!(captured.report.run_mean_ms > 0.0);
        captured.requests
    };
    assert_eq!(captured(&log), captured(&streamed));
    stop.send(()).unwrap();
    let collected = collecting.await.unwrap().unwrap();
    assert_eq!(collected.requests, sent.get() as u64);
    assert_eq!(collected.callers, BTreeSet::from(["sidecar-2".to_owned()]));

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
