// SPDX-License-Identifier: Apache-2.0
//! A host that claims more keys than weir-control may keep.

use axum::Router;
use axum::routing::get;
use serde_json::{Value, json};

use crate::program::{FREE, Program, until};

/// A host with so many keys, and its figures.
async fn host(keys: usize) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let keys: Vec<String> = (0..keys).map(|key| format!("key-{key}")).collect();
    let cache = json!({"version": 1, "epoch": 1, "reset": true, "added": keys}).to_string();
    let page = "weir_host_in_progress 4\nweir_host_queued{priority=\"16\"} 2\n";
    let app = Router::new()
        .route("/metrics", get(async move || page))
        .route("/cache", get(async move || cache));
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_that_claims_more_keys_than_memory_allows_costs_its_cluster_its_cache_contents_alone()
 {
    let (modest, greedy) = (host(100).await, host(20_000).await);
    let cluster = |address: &str| {
        let polls = "scrape: { interval: 50ms }, cache: { interval: 50ms, timeout: 10s }";
        format!("{{ hosts: [ {{ address: \"{address}\" }} ], {polls} }}")
    };
    let control = Program::start(
        &format!(
            "{FREE}memory: {{ limit: 1MiB }}\nclusters: {{ greedy: {}, modest: {} }}\n",
            cluster(&greedy),
            cluster(&modest)
        ),
        &[],
    );
    let tables = until("the drop", || {
        let tables = control.tables();
        let of = |cluster: &str, field: &str| tables["clusters"][cluster][field].clone();
        let dropped = of("greedy", "cache_contents_dropped") == Value::Bool(true);
        let read = of("modest", "cache_contents_bytes").as_u64()? > 0;
        (dropped && read).then_some(tables)
    });
    assert_eq!(
        tables["clusters"]["modest"]["cache_contents_dropped"],
        false
    );
    assert_eq!(tables["clusters"]["modest"]["hosts"][0]["known_keys"], 100);
    assert!(tables["memory"]["counted_bytes"].as_u64().unwrap() <= 1 << 20);
    // Its hosts and what they are doing stay.
    until("the load", || {
        let host = &control.tables()["clusters"]["greedy"]["hosts"][0];
        (host["in_progress"] == 4 && host["state"] == "up").then_some(())
    });
    let log = control.log();
    assert!(
        log.contains("cache contents are dropped") && log.contains("greedy"),
        "{log}"
    );
    let page = control.page("/metrics");
    let line = "weir_control_cache_contents_dropped{cluster=\"greedy\"} 1";
    assert!(page.contains(line), "{page}");
}
