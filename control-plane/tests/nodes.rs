// SPDX-License-Identifier: Apache-2.0
//! What the governor of a node says of its host, and what it is told, with all of weir-control in the test's
//! own process.

#[allow(dead_code)] // Other tests use more of it.
mod inside;
#[allow(dead_code)] // Other tests use more of it.
mod waits;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http_body_util::BodyExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::DropGuard;
use tonic::{Code, Streaming};
use waits::{end, until, within};
use weir_tables::v1::nodes_client::NodesClient;
use weir_tables::v1::{HostRow, NodeReport};

struct Control {
    xds: SocketAddr,
    admin: SocketAddr,
    path: PathBuf,
    _folder: tempfile::TempDir,
    shutdown: Option<DropGuard>,
}

const FREE: &str = "xds: { listen: \"127.0.0.1:0\" }\nadmin: { listen: \"127.0.0.1:0\" }\n\
                    reports: { forget_after: 1s }\n";
/// Nobody listens there.
const HOST: &str = "127.0.0.1:1";

impl Control {
    /// With this cluster "c".
    async fn of(cluster: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.yaml");
        std::fs::write(&path, format!("{FREE}clusters: {{ c: {cluster} }}\n")).unwrap();
        let control = inside::start(path.clone()).await;
        Self {
            xds: control.xds,
            admin: control.admin,
            path,
            _folder: folder,
            shutdown: Some(control.ends),
        }
    }

    /// With one host of a whole core, which nobody asks for anything.
    async fn of_one_host() -> Self {
        Self::of(&with_host(HOST, "")).await
    }

    async fn node(&self, report: NodeReport) -> Node {
        let endpoint = format!("http://{}", self.xds);
        let mut client = NodesClient::connect(endpoint).await.unwrap();
        let (reports, outbound) = mpsc::channel(4);
        reports.send(report).await.unwrap();
        let rows = client.stream(ReceiverStream::new(outbound)).await;
        Node {
            reports,
            rows: rows.unwrap().into_inner(),
        }
    }

    async fn get(&self, path: &str) -> String {
        let executor = hyper_util::rt::TokioExecutor::new();
        let client = hyper_util::client::legacy::Client::builder(executor)
            .build_http::<http_body_util::Empty<bytes::Bytes>>();
        let url = format!("http://{}{path}", self.admin).parse().unwrap();
        let answer = client.get(url).await.unwrap();
        let body = answer.into_body().collect().await.unwrap().to_bytes();
        String::from_utf8(body.to_vec()).unwrap()
    }

    /// Waits until the host looks like this in `/tables`.
    async fn until(&self, what: &str, is: impl Fn(&Value) -> bool) {
        until(what, async || {
            let tables: Value = serde_json::from_str(&self.get("/tables").await).unwrap();
            let host = &tables["clusters"]["c"]["hosts"][0];
            is(host).then_some(()).ok_or_else(|| host.clone())
        })
        .await;
    }

    /// Waits until the host that is pushed, and not only known, has this capacity.
    async fn until_pushed(&self, millicores: u64) {
        until(&format!("{millicores} that are pushed"), async || {
            let explained = self.get("/explain?cluster=c&key=a").await;
            let explained: Value = serde_json::from_str(&explained).unwrap();
            let capacity = &explained["ranked"][0]["capacity_millicores"];
            (*capacity == millicores).then_some(()).ok_or(explained)
        })
        .await;
    }

    async fn until_metrics(&self, line: &str) {
        self.until_page(line, |page| page.lines().any(|l| l == line))
            .await;
    }

    async fn until_page(&self, what: &str, is: impl Fn(&str) -> bool) {
        until(what, async || {
            let page = self.get("/metrics").await;
            is(&page).then_some(()).ok_or(page)
        })
        .await;
    }
}

fn with_host(address: &str, more: &str) -> String {
    format!("{{ hosts: [ {{ address: \"{address}\", capacity_millicores: 1000 }} ] {more} }}")
}

fn says(host: &str, capacity_millicores: u32) -> NodeReport {
    NodeReport {
        cluster: "c".to_owned(),
        host: host.to_owned(),
        capacity_millicores,
    }
}

struct Node {
    reports: mpsc::Sender<NodeReport>,
    rows: Streaming<HostRow>,
}

impl Node {
    async fn row(&mut self) -> HostRow {
        let row = within("a row", self.rows.message()).await;
        row.unwrap().unwrap()
    }

    /// The row that looks like this; those before it are passed over.
    async fn until(&mut self, what: &str, is: impl Fn(&HostRow) -> bool) -> HostRow {
        until(what, async || {
            let row = self.row().await;
            is(&row).then_some(row).ok_or_else(|| format!("{row:?}"))
        })
        .await
    }

    async fn end(&mut self) -> tonic::Status {
        end(&mut self.rows).await
    }
}

/// A host's page of metrics: so many jobs waited so long.
async fn page(delay: tokio::sync::watch::Receiver<Duration>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (mut jobs, mut waited) = (0, 0.0);
    let page = move || {
        (jobs, waited) = (jobs + 10, waited + 10.0 * delay.borrow().as_secs_f64());
        format!(
            "weir_host_in_progress 1\nweir_host_queued 0\n\
             weir_host_queuing_delay_seconds_sum {waited}\n\
             weir_host_queuing_delay_seconds_count {jobs}\n"
        )
    };
    let page = std::sync::Arc::new(std::sync::Mutex::new(page));
    let app = axum::Router::new().route(
        "/metrics",
        axum::routing::get(async move || page.lock().unwrap()()),
    );
    tokio::spawn(async move { axum::serve(listener, app).await });
    address
}

#[tokio::test]
async fn the_reported_capacity_is_the_tables_until_it_is_forgotten() {
    let control = Control::of_one_host().await;
    let configured = |host: &Value| {
        host["capacity_millicores"] == 1000
            && host["capacity_from"] == "configuration"
            && host["capacity_age_ms"].is_null()
    };
    control.until("what is configured", configured).await;
    let node = control.node(says(HOST, 500)).await;
    let reported = |host: &Value| {
        host["capacity_millicores"] == 500
            && host["capacity_from"] == "node"
            && host["capacity_age_ms"].is_u64()
    };
    control.until("what the node says", reported).await;
    control.until_pushed(500).await;
    let metric = "weir_control_node_capacity_cores{cluster=\"c\",host=\"127.0.0.1:1\"} 0.5";
    control.until_metrics(metric).await;
    control.until_metrics("weir_control_node_streams 1").await;
    drop(node);
    control.until_metrics("weir_control_node_streams 0").await;
    control.until("what is configured again", configured).await;
    control.until_pushed(1000).await;
    control
        .until_page("a page without it", |page| !page.contains(metric))
        .await;
}

/// As SIGSTOP does: its connection stays.
#[tokio::test]
async fn a_governor_that_is_stopped_is_silent_until_it_says_something_again() {
    let control = Control::of_one_host().await;
    let silent = |silent: u8| {
        format!("weir_control_node_silent{{cluster=\"c\",host=\"127.0.0.1:1\"}} {silent}")
    };
    control
        .until("a node without a governor", |host| {
            host["node_silent"] == false
        })
        .await;
    let page = control.get("/metrics").await;
    assert!(!page.contains("weir_control_node_silent{"), "{page}");
    let node = control.node(says(HOST, 500)).await;
    control.until_metrics(&silent(1)).await;
    control
        .until("a silent node", |host| host["node_silent"] == true)
        .await;
    control.until_metrics("weir_control_node_streams 1").await;
    let heard = silent(0);
    let goes_on = async {
        loop {
            node.reports.send(says(HOST, 500)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    };
    tokio::select! {
        () = goes_on => {}
        () = control.until_metrics(&heard) => {}
    }
}

#[tokio::test]
async fn a_row_comes_at_once_and_again_though_nothing_is_known() {
    let control = Control::of_one_host().await;
    let mut node = control.node(says(HOST, 1)).await;
    for _ in 0..2 {
        let nothing = HostRow {
            admission_level: 4096,
            queuing_delay_us: None,
            age_ms: None,
        };
        assert_eq!(node.row().await, nothing);
    }
}

#[tokio::test]
async fn the_row_has_what_the_host_said_last_and_a_level_that_falls() {
    let (delay, told) = tokio::sync::watch::channel(Duration::from_millis(3));
    let host = page(told).await.to_string();
    let settings = ", scrape: { interval: 10ms }, policy: { overload: dagor }, \
                     dagor: { control: paper, window: 100ms }";
    let control = Control::of(&with_host(&host, settings)).await;
    let mut node = control.node(says(&host, 1000)).await;
    let waited = |ms: u64| move |row: &HostRow| row.queuing_delay_us == Some(ms * 1000);
    let calm = node.until("a short delay", waited(3)).await;
    assert_eq!(calm.admission_level, 4096);
    assert!(calm.age_ms.is_some());
    delay.send(Duration::from_millis(300)).unwrap();
    node.until("a long delay", waited(300)).await;
    // Levels move by what proxies report.
    let reports = weir_tables::v1::Report {
        proxy: "p".to_owned(),
        ..Default::default()
    };
    let mut proxy =
        weir_tables::v1::reports_client::ReportsClient::connect(format!("http://{}", control.xds))
            .await
            .unwrap();
    let offers = (1..).map(move |round: u64| {
        let offered = |count| weir_tables::v1::RankCount { rank: 2000, count };
        let cluster = weir_tables::v1::ClusterRecord {
            cluster: "c".to_owned(),
            offered: vec![offered(round * 1000)],
            hosts: vec![weir_tables::v1::HostRecord {
                address: host.clone(),
                admitted: vec![offered(round * 1000)],
                ..Default::default()
            }],
            ..Default::default()
        };
        let record = weir_tables::v1::VmRecord {
            deadline_ns: u64::MAX,
            clusters: vec![cluster],
            ..Default::default()
        };
        weir_tables::v1::Report {
            records: vec![record],
            ..reports.clone()
        }
    });
    let (sender, outbound) = mpsc::channel(1);
    tokio::spawn(async move {
        for offer in offers {
            if sender.send(offer).await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
    let _answers = proxy.stream(ReceiverStream::new(outbound)).await.unwrap();
    let shed = node
        .until("a level that sheds", |row| row.admission_level < 4096)
        .await;
    assert_eq!(shed.queuing_delay_us, Some(300_000));
}

#[tokio::test]
async fn a_newer_stream_of_a_host_ends_the_older_and_no_other() {
    let both = "{ hosts: [ { address: \"127.0.0.1:1\" }, { address: \"127.0.0.1:2\" } ] }";
    let control = Control::of(both).await;
    let mut older = control.node(says("127.0.0.1:1", 1000)).await;
    let mut other = control.node(says("127.0.0.1:2", 1000)).await;
    other.row().await;
    let mut newer = control.node(says("127.0.0.1:1", 2000)).await;
    assert_eq!(older.end().await.code(), Code::Aborted);
    newer.row().await;
    other.row().await;
    // As a governor does: what was said once is forgotten here as soon as it may count.
    let says_again = async {
        loop {
            tokio::time::sleep(Duration::from_millis(200)).await;
            newer.reports.send(says("127.0.0.1:1", 2000)).await.unwrap();
        }
    };
    tokio::select! {
        () = says_again => {}
        () = control.until("2 cores", |host| host["capacity_millicores"] == 2000) => {}
    }
}

#[tokio::test]
async fn what_is_wrong_is_refused_by_its_name() {
    let control = Control::of_one_host().await;
    let long = "x".repeat(1025);
    let of = |cluster: &str| NodeReport {
        cluster: cluster.to_owned(),
        ..says(HOST, 1)
    };
    let wrong = [
        (
            says(HOST, 0),
            "report.capacity_millicores: 0 is not in 1..=1024000",
        ),
        (says(HOST, 1_024_001), "report.capacity_millicores: 1024001"),
        (says("", 1), "report.host: empty"),
        (of(""), "report.cluster: empty"),
        (says(&long, 1), "report.host: over 1024 bytes"),
        (of(&long), "report.cluster: over 1024 bytes"),
    ];
    for (report, reason) in wrong {
        let status = control.node(report).await.end().await;
        assert_eq!(status.code(), Code::InvalidArgument, "{reason}");
        assert!(status.message().starts_with(reason), "{status}");
    }
    for report in [says("127.0.0.1:9", 1), of("other")] {
        let status = control.node(report).await.end().await;
        assert_eq!(status.code(), Code::NotFound, "{status}");
    }
    let huge = says(&"x".repeat(1 << 20), 1);
    let status = control.node(huge).await.end().await;
    assert_eq!(status.code(), Code::OutOfRange, "{status}");
    control
        .until("what is configured", |host| {
            host["capacity_from"] == "configuration"
        })
        .await;
}

#[tokio::test]
async fn a_stream_speaks_of_one_host_and_of_possible_capacities_to_its_end() {
    let both = "{ hosts: [ { address: \"127.0.0.1:1\" }, { address: \"127.0.0.1:2\" } ] }";
    let control = Control::of(both).await;
    for second in [says("127.0.0.1:2", 1), says("127.0.0.1:1", 0)] {
        let mut node = control.node(says("127.0.0.1:1", 1)).await;
        node.row().await;
        node.reports.send(second).await.unwrap();
        assert_eq!(node.end().await.code(), Code::InvalidArgument);
    }
}

#[tokio::test]
async fn a_stream_that_brings_more_reports_than_a_governor_has_is_ended() {
    let control = Control::of_one_host().await;
    let mut node = control.node(says(HOST, 1)).await;
    node.row().await;
    let reports = node.reports.clone();
    tokio::spawn(async move { while reports.send(says(HOST, 1)).await.is_ok() {} });
    let status = node.end().await;
    assert_eq!(status.code(), Code::ResourceExhausted, "{status}");
    // Who is no faster than a governor, and was held up.
    let mut node = control.node(says(HOST, 1)).await;
    for _ in 0..90 {
        node.reports.send(says(HOST, 2)).await.unwrap();
    }
    // It goes on: what it says counts a second after the last change, and is forgotten a second after it was said.
    let reports = node.reports.clone();
    let goes_on = async {
        for _ in 0..10 {
            tokio::time::sleep(Duration::from_millis(500)).await;
            reports.send(says(HOST, 2)).await.unwrap();
        }
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = control.until("2 thousandths", |host| host["capacity_millicores"] == 2) => {}
        () = goes_on => {}
    }
    node.row().await;
}

#[tokio::test]
async fn the_stream_of_a_host_that_is_taken_away_ends_and_says_why() {
    let control = Control::of_one_host().await;
    let mut node = control.node(says(HOST, 1)).await;
    node.row().await;
    std::fs::write(
        &control.path,
        format!("{FREE}clusters: {{ c: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n"),
    )
    .unwrap();
    assert_eq!(node.end().await.code(), Code::NotFound);
}

#[tokio::test]
async fn a_shutdown_ends_every_stream() {
    let mut control = Control::of_one_host().await;
    let mut node = control.node(says(HOST, 1)).await;
    node.row().await;
    control.shutdown = None;
    assert_eq!(node.end().await.code(), Code::Unavailable);
}

#[tokio::test]
async fn a_governor_is_no_sidecar() {
    let control = Control::of_one_host().await;
    let mut node = control.node(says(HOST, 500)).await;
    node.row().await;
    control
        .until("what the node says", |host| host["capacity_from"] == "node")
        .await;
    let tables: Value = serde_json::from_str(&control.get("/tables").await).unwrap();
    assert_eq!(tables["proxies"], Value::Array(Vec::new()));
    control
        .until_metrics("weir_control_reporting_proxies 0")
        .await;
}
