// SPDX-License-Identifier: Apache-2.0
//! All of weir-control in the test's own process, on free ports.

#[allow(dead_code)] // Other tests use more of it.
mod inside;
#[allow(dead_code)] // Other tests use more of it.
mod waits;

use std::net::SocketAddr;
use std::path::PathBuf;

use http_body_util::BodyExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio_util::sync::DropGuard;
use tonic::Code;
use waits::{end, until, within};
use weir_control::{Listeners, config};
use weir_tables::v1::{Report, reports_client::ReportsClient};

struct Control {
    xds: SocketAddr,
    admin: SocketAddr,
    path: PathBuf,
    folder: tempfile::TempDir,
    _shutdown: DropGuard,
}

const FREE: &str = "xds: { listen: \"127.0.0.1:0\" }\nadmin: { listen: \"127.0.0.1:0\" }\n";

async fn control(clusters: &str) -> Control {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(&path, format!("{FREE}{clusters}")).unwrap();
    std::fs::write(folder.path().join("hosts.yaml"), "[]").unwrap();
    let inside = inside::start(path.clone()).await;
    Control {
        xds: inside.xds,
        admin: inside.admin,
        path,
        folder,
        _shutdown: inside.ends,
    }
}

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let client = hyper_util::client::legacy::Client::builder(hyper_util::rt::TokioExecutor::new())
        .build_http::<http_body_util::Empty<bytes::Bytes>>();
    let answer = client
        .get(format!("http://{address}{path}").parse().unwrap())
        .await
        .unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

impl Control {
    async fn tables(&self) -> Value {
        serde_json::from_str(&get(self.admin, "/tables").await.1).unwrap()
    }

    /// Waits until `/tables` looks like this.
    async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, async || {
            let tables = self.tables().await;
            if is(&tables) { Ok(tables) } else { Err(tables) }
        })
        .await
    }
}

/// A host with a page of metrics and a cache of one key.
async fn host() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let metrics = "weir_host_in_progress 4\nweir_host_queued{priority=\"16\"} 2\n\
                   weir_host_queuing_delay_seconds_sum 1\nweir_host_queuing_delay_seconds_count 2\n";
    let cache = r#"{"version":1,"epoch":1,"reset":true,"added":["a"],"removed":[]}"#;
    let app = axum::Router::new()
        .route("/metrics", axum::routing::get(async move || metrics))
        .route("/cache", axum::routing::get(async move || cache));
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

#[tokio::test]
async fn what_a_host_says_is_shown_and_explained() {
    let address = host().await;
    let hosts = format!("hosts: [ {{ address: \"{address}\" }} ]");
    let sources = "scrape: { interval: 10ms }, cache: { interval: 10ms }";
    let control = control(&format!(
        "clusters: {{ rules: {{ {hosts}, {sources} }} }}\n"
    ))
    .await;
    let host = |tables: &Value| tables["clusters"]["rules"]["hosts"][0].clone();
    let tables = control
        .until("what the host says", |tables| {
            host(tables)["known_keys"] == 1 && host(tables)["in_progress"] == 4
        })
        .await;
    assert_eq!(host(&tables)["queued"][16], 2);
    assert_eq!(get(control.admin, "/ready").await, (200, "ready\n".into()));
    until("a choice by what the host says", async || {
        let (status, body) = get(control.admin, "/explain?cluster=rules&key=a&priority=high").await;
        let explained: Value = serde_json::from_str(&body).unwrap();
        assert_eq!((status, &explained["outcome"]), (200, &Value::from("send")));
        if explained["reason"] == "known_cached" && explained["ranked"][0]["in_progress"] == 4 {
            assert_eq!(explained["ranked"][0]["address"], address.to_string());
            return Ok(());
        }
        Err(explained)
    })
    .await;
    let (status, problem) = get(control.admin, "/explain?cluster=x").await;
    assert_eq!(status, 404);
    assert!(problem.contains("rules"), "{problem}");
    assert_eq!(
        get(control.admin, "/explain?cluster=rules&priority=99")
            .await
            .0,
        400
    );
    let (status, page) = get(control.admin, "/metrics").await;
    assert_eq!(status, 200);
    assert!(
        page.contains("weir_control_polls_total{source=\"scrape\",result=\"ok\"}"),
        "{page}"
    );
    assert_eq!(get(control.admin, "/nothing").await.0, 404);
}

#[tokio::test]
async fn a_change_of_a_file_is_applied_and_a_bad_one_is_not() {
    let control = control("clusters: { rules: { hosts_file: hosts.yaml } }\n").await;
    let hosts = |tables: &Value| {
        tables["clusters"]["rules"]["hosts"]
            .as_array()
            .unwrap()
            .len()
    };
    let file = control.folder.path().join("hosts.yaml");
    std::fs::write(&file, "- address: 127.0.0.1:1\n- address: 127.0.0.1:2\n").unwrap();
    control
        .until("two hosts", |tables| hosts(tables) == 2)
        .await;
    std::fs::write(&file, "- address: 127.0.0.1:1\n- address: 127.0.0.1:1\n").unwrap();
    let tables = control
        .until("a refusal", |tables| {
            !tables["configuration_refused"].is_null()
        })
        .await;
    assert_eq!(hosts(&tables), 2);
    let reason = tables["configuration_refused"].as_str().unwrap();
    assert!(
        reason.contains("hosts.yaml:2: hosts[1].address: 127.0.0.1:1 is already"),
        "{reason}"
    );
    std::fs::write(
        &control.path,
        "clusters: { other: { hosts: [ { address: 127.0.0.1:9 } ] } }\n",
    )
    .unwrap();
    let tables = control
        .until("another refusal", |tables| {
            tables["configuration_refused"]
                .as_str()
                .is_some_and(|why| why.contains("restart needed"))
        })
        .await;
    assert_eq!(hosts(&tables), 2);
    std::fs::write(
        &control.path,
        format!("{FREE}clusters: {{ other: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n"),
    )
    .unwrap();
    let tables = control
        .until("no refusal", |tables| {
            tables["configuration_refused"].is_null()
        })
        .await;
    assert!(tables["clusters"]["other"].is_object() && tables["clusters"]["rules"].is_null());
}

#[tokio::test]
async fn a_newer_report_stream_of_a_proxy_ends_the_older_with_aborted() {
    let control = control("clusters: { rules: { hosts: [ { address: 127.0.0.1:9 } ] } }\n").await;
    let open_of = async |process: &'static str, proxy: &str| {
        let mut client = ReportsClient::connect(format!("http://{}", control.xds))
            .await
            .unwrap();
        let (reports, stream) = tokio::sync::mpsc::channel(4);
        reports
            .send(Report {
                proxy: proxy.into(),
                ..Default::default()
            })
            .await
            .unwrap();
        let stream = tokio_stream::wrappers::ReceiverStream::new(stream);
        let mut request = tonic::Request::new(stream);
        let process = tonic::metadata::MetadataValue::from_static(process);
        request.metadata_mut().insert("x-weir-process", process);
        let answers = client.stream(request).await.unwrap().into_inner();
        (reports, answers)
    };
    let open = async |proxy: &str| open_of("1f", proxy).await;
    let (parent, mut beside) = open_of("2e", "p").await;
    let (_older, mut answers) = open("p").await;
    let (_other, _) = open("q").await;
    let (newer, mut newest) = open("p").await;
    assert_eq!(end(&mut answers).await.code(), Code::Aborted);
    newer
        .send(Report {
            proxy: "q".into(),
            ..Default::default()
        })
        .await
        .unwrap();
    assert_eq!(end(&mut newest).await.code(), Code::InvalidArgument);
    // Another process keeps its stream.
    parent
        .send(Report {
            proxy: "p".into(),
            ..Default::default()
        })
        .await
        .unwrap();
    let answered = async { while beside.message().await.unwrap().unwrap().taken < 2 {} };
    within("an answer to its second report", answered).await;
    let (_empty, mut refused) = open("").await;
    assert_eq!(end(&mut refused).await.code(), Code::InvalidArgument);
}

/// A fleet comes back at once. Nobody takes the connections here, so all of them have to find a place.
#[tokio::test]
async fn hundreds_of_connections_find_a_place_at_once() {
    let system = std::fs::read_to_string("/proc/sys/net/core/somaxconn").unwrap();
    let places = system.trim().parse::<usize>().unwrap().min(300);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.yaml");
    std::fs::write(
        &path,
        format!("{FREE}clusters: {{ r: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n"),
    )
    .unwrap();
    let loaded = config::load(&path).map_err(|(error, _)| error).unwrap();
    let listeners = Listeners::bind(&loaded.config).await.unwrap();
    let address = listeners.xds.local_addr().unwrap();
    let mut connections = Vec::new();
    for _ in 0..places {
        let limit = std::time::Duration::from_secs(1);
        let connection = std::net::TcpStream::connect_timeout(&address, limit);
        connections.push(connection.unwrap());
    }
}
