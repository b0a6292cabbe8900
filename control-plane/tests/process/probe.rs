// SPDX-License-Identifier: Apache-2.0
//! `--check --probe` before hosts, a Prometheus and a Consul that are emulated.

use std::net::SocketAddr;
use std::process::Output;

use axum::Router;
use axum::extract::Query;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use serde_json::{Value, json};

const GOOD: &str = "weir_host_in_progress 3\nweir_host_queued{priority=\"0\"} 1\n\
                    weir_host_queuing_delay_seconds_sum 1\nweir_host_queuing_delay_seconds_count 2\n\
                    weir_host_cores 4\n";

/// Serves until the test ends.
async fn served(app: Router) -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

/// A host with this load page and two keys.
async fn host(page: String) -> SocketAddr {
    let keys = r#"{"version":1,"epoch":1,"reset":true,"added":["a","b"]}"#;
    let app = Router::new()
        .route("/metrics", get(async move || page))
        .route("/cache", get(async move || keys));
    served(app).await
}

/// Nobody listens there.
async fn closed() -> SocketAddr {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap()
}

/// The exit code, and the lines after the one that counts what is configured; those of wants are left out.
async fn probed(text: String) -> (Option<i32>, Vec<String>) {
    let program = tokio::task::spawn_blocking(move || {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.yaml");
        std::fs::write(&path, text).unwrap();
        let mut command = super::weir_control(&path);
        command.args(["--check", "--probe"]).output().unwrap()
    });
    let Output { status, stdout, .. } = program.await.unwrap();
    let text = String::from_utf8(stdout).unwrap();
    let lines = text.lines().skip(1);
    let lines = lines.filter(|line| !line.starts_with("clusters."));
    (status.code(), lines.map(str::to_owned).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_have_what_is_configured_are_good() {
    let (first, second) = (host(GOOD.into()).await, host(GOOD.into()).await);
    let text = format!(
        "clusters: {{ r: {{ hosts: [ {{ address: \"{first}\" }}, {{ address: \"{second}\" }} ], scrape: {{ timeout: 30s }}, cache: {{ timeout: 30s }} }} }}"
    );
    let (code, lines) = probed(text).await;
    let has = "scrape has in_progress, queued, queuing_delay, cores; without busy_cores, work, draining | cache has 2 keys";
    let mut both = [first, second].map(|address| format!("ok: r {address}: {has}"));
    both.sort();
    assert_eq!(&lines[..2], both);
    assert_eq!(lines[2..], ["ok: 2 of 2 hosts have what is configured"]);
    assert_eq!(code, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn each_host_says_what_it_lacks_and_a_silent_one_holds_nobody_up() {
    let without_queue = GOOD.replace("weir_host_queued", "my_queue");
    // A terminal is told nothing by them.
    let foreign = GOOD.replace("priority=\"0\"", "priority=\"\u{1b}[2J\"");
    let silent = served(Router::new().fallback(async || std::future::pending::<()>().await)).await;
    let hosts = [
        (
            host(without_queue).await,
            "scrape has in_progress, queuing_delay; lacks queued, cores; without busy_cores, work, draining \
             (weir_host_queued: not on the page; my_cores: not on the page) | cache has 2 keys",
        ),
        (
            host(foreign).await,
            "scrape has in_progress, queuing_delay; lacks queued, cores; without busy_cores, work, draining \
             (weir_host_queued: priority \"\\u{1b}[2J\" is not in 0 to 31; my_cores: not on the page) | cache has 2 keys",
        ),
        (
            closed().await,
            "scrape: refused: Connection refused (os error 111) | cache: refused: Connection refused (os error 111)",
        ),
        (
            served(Router::new()).await,
            "scrape: bad_status: 404 | cache: bad_status: 404",
        ),
    ];
    let list = hosts.map(|(address, _)| format!("{{ address: \"{address}\" }}"));
    let text = format!(
        "clusters:\n  r: {{ hosts: [ {} ], scrape: {{ timeout: 30s, metrics: {{ cores: my_cores }} }}, cache: {{ timeout: 30s }} }}\n  \
         s: {{ hosts: [ {{ address: \"{silent}\" }} ], scrape: {{ timeout: 300ms }}, cache: {{ timeout: 300ms }} }}\n",
        list.join(", ")
    );
    let (code, lines) = probed(text).await;
    assert_eq!(code, Some(1));
    for (address, says) in hosts {
        let line = format!("BROKEN: r {address}: {says}");
        assert!(lines.contains(&line), "{line}\n{lines:#?}");
    }
    let late = "timed_out: no complete answer within 300ms";
    let silence = format!("BROKEN: s {silent}: scrape: {late} | cache: {late}");
    let sum = "BROKEN: 5 of 5 hosts lack what is configured".to_owned();
    assert_eq!(lines[4..], [silence, sum]);
}

/// A Prometheus that knows two figures of these hosts.
async fn prometheus(running: Vec<SocketAddr>, queued: Vec<SocketAddr>) -> SocketAddr {
    let series = |hosts: &[SocketAddr]| -> Value {
        let one = |host: &SocketAddr| json!({ "metric": { "instance": host.to_string() }, "value": [1, "2"] });
        hosts.iter().map(one).collect()
    };
    let (running, queued) = (series(&running), series(&queued));
    let app = async move |Query(asked): Query<std::collections::BTreeMap<String, String>>| {
        let result = match asked["query"].as_str() {
            "running" => running.clone(),
            "waiting" => queued.clone(),
            _ => json!([]),
        };
        json!({ "status": "success", "data": { "resultType": "vector", "result": result } })
            .to_string()
    };
    served(Router::new().route("/api/v1/query", get(app))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn figures_that_prometheus_lacks_are_named_of_the_host_or_of_all() {
    let (first, second) = (closed().await, closed().await);
    let server = prometheus(vec![first, second], vec![first]).await;
    let text = |queries: &str| {
        format!(
            "clusters: {{ r: {{ hosts: [ {{ address: \"{first}\" }}, {{ address: \"{second}\" }} ], prometheus: {{ \
             address: \"http://{server}\", timeout: 30s, queries: {{ in_progress: running, queuing_delay: \"\", \
             age: \"\", {queries} }} }} }} }}"
        )
    };
    let (code, lines) = probed(text("queued: \"\"")).await;
    let two = "prometheus has in_progress; without busy_cores, work";
    assert_eq!(code, Some(0), "{lines:#?}");
    assert_eq!(lines[0], format!("ok: r: {two}, draining"));
    assert!(lines[1].starts_with("ok: r ") && lines[1].ends_with(two));
    let (code, lines) = probed(text("queued: waiting, work: none")).await;
    assert_eq!(code, Some(1));
    assert_eq!(
        lines[0],
        "BROKEN: r: prometheus has in_progress, queued; lacks work; without busy_cores, draining"
    );
    let well =
        format!("ok: r {first}: prometheus has in_progress, queued; without busy_cores, work");
    let lacking = format!("BROKEN: r {second}: prometheus lacks load (queued: no series)");
    assert!(
        lines.contains(&well) && lines.contains(&lacking),
        "{lines:#?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_that_consul_names_are_asked_too() {
    let found = host(GOOD.into()).await;
    let entry = json!([{
        "Node": { "Node": "n", "Address": "127.0.0.1" },
        "Service": { "ID": "a", "Service": "rules", "Address": "127.0.0.1", "Port": found.port() },
        "Checks": [],
    }]);
    let health = move || async move { ([("X-Consul-Index", "7")], entry.to_string()) };
    let app = Router::new()
        .route("/v1/health/service/rules", get(health))
        .fallback(async || (StatusCode::INTERNAL_SERVER_ERROR, "not this one").into_response());
    let consul = served(app).await;
    let text = |address: SocketAddr| {
        format!(
            "clusters: {{ r: {{ scrape: {{ timeout: 30s }}, consul: {{ address: \"http://{address}\", service: rules, connect: false }} }} }}"
        )
    };
    let (code, lines) = probed(text(consul)).await;
    assert_eq!(code, Some(0), "{lines:#?}");
    assert_eq!(lines[0], "ok: r: consul has 1 host");
    assert!(lines[1].starts_with(&format!("ok: r {found}: scrape has in_progress")));
    let (code, lines) = probed(text(closed().await)).await;
    assert_eq!(code, Some(1));
    let refused = "BROKEN: r: consul: refused: Connection refused (os error 111)";
    assert_eq!(lines[0], refused);
    // Nobody is found by DNS either.
    let away = closed().await;
    let dns = format!("dns: {{ name: rules.example, port: 80, server: \"{away}\" }}");
    let (code, lines) = probed(format!("clusters: {{ r: {{ {dns} }} }}")).await;
    assert_eq!(code, Some(1));
    let refused = format!("BROKEN: r: dns: refused: {away}: no server takes a connection by TCP");
    assert_eq!(lines[0], refused);
    // Nor in Kubernetes.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("kubeconfig");
    let cluster = format!("{{ name: c, cluster: {{ server: \"http://{away}\" }} }}");
    let context = "{ name: x, context: { cluster: c } }";
    let text = format!("{{ current-context: x, contexts: [{context}], clusters: [{cluster}] }}");
    std::fs::write(&file, text).unwrap();
    let fields = format!("namespace: a, port: 80, kubeconfig: {}", file.display());
    let (code, lines) = probed(format!(
        "clusters: {{ r: {{ kubernetes: {{ {fields} }} }} }}"
    ))
    .await;
    assert_eq!(code, Some(1));
    let refused = "BROKEN: r: kubernetes: refused: Connection refused (os error 111)";
    assert_eq!(lines[0], refused);
}
