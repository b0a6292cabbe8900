// SPDX-License-Identifier: Apache-2.0
//! A sidecar that reports what is not so.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status, Streaming};
use weir_tables::v1::{
    Assignment, ClusterRecord, HostRecord, Load, RankCount, Report, ReportAnswer, VmRecord,
    reports_client::ReportsClient,
};

use crate::program::{FREE, Program, until};
use crate::waits::end;

struct Sidecar {
    reports: mpsc::Sender<Report>,
    answers: Streaming<ReportAnswer>,
}

impl Sidecar {
    async fn new(xds: SocketAddr) -> Self {
        let (reports, outbound) = mpsc::channel(4);
        let mut client = ReportsClient::connect(format!("http://{xds}"))
            .await
            .unwrap();
        let answers = client.stream(ReceiverStream::new(outbound)).await.unwrap();
        Self {
            reports,
            answers: answers.into_inner(),
        }
    }

    async fn says(&self, report: Report) {
        self.reports.send(report).await.unwrap();
    }

    async fn end(mut self) -> Status {
        end(&mut self.answers).await
    }
}

fn report(proxy: &str, epoch: u64, clusters: Vec<ClusterRecord>) -> Report {
    Report {
        proxy: proxy.into(),
        records: vec![VmRecord {
            slot: 0,
            epoch,
            deadline_ns: u64::MAX,
            clusters,
            published_ns: 1,
        }],
        ..Default::default()
    }
}

/// Everything as large as it can be said.
fn absurd(address: String, queued: usize) -> HostRecord {
    HostRecord {
        address,
        admitted: vec![
            RankCount {
                rank: u32::MAX,
                count: u64::MAX,
            },
            RankCount {
                rank: 0,
                count: u64::MAX,
            },
        ],
        unconnected: u64::MAX,
        reading_us: u64::MAX,
        ok: u64::MAX,
        no_answer: u64::MAX,
        load: Some(Load {
            in_progress: u32::MAX,
            queued: vec![u32::MAX; queued],
            ..Default::default()
        }),
        ..Default::default()
    }
}

fn cluster(name: &str, hosts: Vec<HostRecord>) -> ClusterRecord {
    ClusterRecord {
        cluster: name.into(),
        offered: vec![RankCount {
            rank: 7,
            count: u64::MAX,
        }],
        shed: vec![RankCount {
            rank: 7,
            count: u64::MAX,
        }],
        held: u64::MAX,
        assignments: vec![Assignment {
            key: 1,
            host_id: 1,
            age_ms: u32::MAX,
        }],
        hosts,
        ..Default::default()
    }
}

const HOST: &str = "127.0.0.1:1";

fn control(policy: &str) -> Program {
    let hosts = format!("hosts: [ {{ address: \"{HOST}\" }} ]");
    let clusters = format!("clusters: {{ rules: {{ {hosts}{policy} }} }}\n");
    Program::start(
        &format!("{FREE}reports: {{ max_proxies: 2, max_vms: 4 }}\n{clusters}"),
        &[],
    )
}

fn host(tables: &Value) -> &Value {
    &tables["clusters"]["rules"]["hosts"][0]
}

fn counted(control: &Program, line: &str) -> Option<String> {
    let page = control.page("/metrics");
    let found = page.lines().find_map(|found| found.strip_prefix(line));
    found.map(|rest| rest.trim().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_of_the_largest_numbers_and_ten_thousand_hosts_names_nobody_new() {
    let control = control("");
    let sidecar = Sidecar::new(control.xds).await;
    let mut hosts = vec![absurd(HOST.into(), 32)];
    hosts.extend(
        (0..10_000).map(|host| absurd(format!("10.0.{}.{}:1", host / 250, host % 250), 32)),
    );
    for epoch in 1..4 {
        let invented =
            (0..100).map(|name| cluster(&format!("invented-{name}"), vec![absurd("x".into(), 1)]));
        let clusters = std::iter::once(cluster("rules", hosts.clone())).chain(invented);
        sidecar.says(report("p", epoch, clusters.collect())).await;
    }
    until("the reports", || {
        (counted(&control, "weir_control_reports_total")? == "3").then_some(())
    });
    let tables = control.tables();
    assert_eq!(tables["clusters"].as_object().unwrap().len(), 1, "{tables}");
    let hosts = tables["clusters"]["rules"]["hosts"].as_array().unwrap();
    assert_eq!(hosts.len(), 1);
    let page = control.page("/metrics");
    assert!(!page.contains("invented") && !page.contains("10.0.1.1"));
    let megabytes = control.most_memory() >> 20;
    assert!(megabytes < 200, "{megabytes} MB for one sidecar's words");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_load_of_more_classes_than_there_are_is_not_believed() {
    let control = control("");
    let sidecar = Sidecar::new(control.xds).await;
    let load = absurd(HOST.into(), 33);
    sidecar
        .says(report("p", 1, vec![cluster("rules", vec![load])]))
        .await;
    until("the report", || {
        (counted(&control, "weir_control_reports_total")? == "1").then_some(())
    });
    let tables = control.tables();
    let told = host(&tables);
    assert_eq!(told["in_progress"], 0, "what it has under way");
    assert_eq!(told["from"], "callers");
}

#[tokio::test(flavor = "multi_thread")]
async fn proxies_and_vms_beyond_the_limits_are_refused_by_name() {
    let control = control("");
    let one = Sidecar::new(control.xds).await;
    one.says(report("one", 1, vec![])).await;
    let two = Sidecar::new(control.xds).await;
    two.says(report("two", 1, vec![])).await;
    until("both", || {
        (counted(&control, "weir_control_reporting_proxies")? == "2").then_some(())
    });
    let three = Sidecar::new(control.xds).await;
    three.says(report("three", 1, vec![])).await;
    let status = three.end().await;
    assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
    assert!(status.message().contains("reports.max_proxies"));
    // A VM more than it may have, each time.
    for epoch in 2..8 {
        one.says(report("one", epoch, vec![])).await;
    }
    until("dropped records", || {
        let dropped = "weir_control_records_dropped_total{reason=\"too_many_vms\"}";
        (counted(&control, dropped)? == "3").then_some(())
    });
    // Somebody else's name ends the stream.
    one.says(report("two", 9, vec![])).await;
    let status = one.end().await;
    assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
}

/// The honest page of a host, which a sidecar's word does not outlive.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_sidecar_says_of_a_host_counts_only_until_the_host_is_asked_again() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let page = "weir_host_in_progress 4\nweir_host_queued{priority=\"16\"} 2\n";
    let app = axum::Router::new().route("/metrics", axum::routing::get(async move || page));
    tokio::spawn(async move { axum::serve(listener, app).await });
    let control = Program::start(
        &format!(
            "{FREE}clusters: {{ rules: {{ hosts: [ {{ address: \"{address}\" }} ], scrape: {{ interval: 50ms }} }} }}\n"
        ),
        &[],
    );
    let in_progress = || host(&control.tables())["in_progress"].as_u64();
    until("the truth", || (in_progress()? == 4).then_some(()));
    let sidecar = Sidecar::new(control.xds).await;
    let lie = || cluster("rules", vec![absurd(address.to_string(), 1)]);
    for epoch in 1..4 {
        sidecar.says(report("p", epoch, vec![lie()])).await;
    }
    until("the reports", || {
        (counted(&control, "weir_control_reports_total")? == "3").then_some(())
    });
    until("the truth again", || (in_progress()? == 4).then_some(()));
}

/// Counters that are kept.
fn rows(control: &Program) -> Option<u64> {
    counted(control, "weir_control_report_rows")?.parse().ok()
}

#[tokio::test(flavor = "multi_thread")]
async fn new_names_in_each_report_of_one_living_vm_leave_nothing_behind() {
    const HOSTS: u32 = 90;
    let control = control("");
    let sidecar = Sidecar::new(control.xds).await;
    let ranks = 0..4096;
    let admitted: Vec<_> = ranks.map(|rank| RankCount { rank, count: 1 }).collect();
    for round in 0..4 {
        let host = |host: u32| HostRecord {
            address: format!("10.{round}.0.{host}:80"),
            admitted: admitted.clone(),
            ..Default::default()
        };
        let hosts = (0..HOSTS).map(host).collect();
        let attack = report("p", 1, vec![cluster("rules", hosts)]);
        sidecar.says(attack).await;
        sidecar.says(report("p", 1, vec![])).await;
        // While the owner is busy only the newest of whole reports would be taken.
        let all = (2 * (round + 1)).to_string();
        until("the reports", || {
            (counted(&control, "weir_control_reports_total")? == all).then_some(())
        });
    }
    let refused = "weir_control_reported_refused_total{reason=\"unknown_host\"}";
    assert_eq!(counted(&control, refused), Some((4 * HOSTS).to_string()));
    // A VM, its cluster, and what was offered and shed, by one rank each.
    until("the figures", || {
        (rows(&control)? == 40 + 80 + 2).then_some(())
    });
    let megabytes = control.most_memory() >> 20;
    assert!(megabytes < 300, "{megabytes} MB for one sidecar's words");
    let refused = &control.tables()["reports_refused"][0];
    assert_eq!(refused["proxy"], "p");
    assert_eq!(refused["refused"]["unknown_host"], 4 * HOSTS);
    assert_eq!(
        control.log().matches("is not counted").count(),
        1,
        "once a minute"
    );
}

/// A report of 17.9 MiB ended its stream, and nobody was told.
#[tokio::test(flavor = "multi_thread")]
async fn a_stream_of_reports_that_is_refused_is_logged_and_counted() {
    let control = control("");
    let sidecar = Sidecar::new(control.xds).await;
    sidecar.says(report("a-large-one", 1, vec![])).await;
    until("the first", || {
        (counted(&control, "weir_control_reports_total")? == "1").then_some(())
    });
    let name = "h".repeat(1 << 20);
    let hosts = (0..17).map(|_| absurd(name.clone(), 1)).collect();
    let large = report("a-large-one", 1, vec![cluster("rules", hosts)]);
    sidecar.says(large).await;
    let status = sidecar.end().await;
    assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    let ended = "weir_control_report_streams_ended_total{reason=\"too_large\"}";
    assert_eq!(counted(&control, ended).as_deref(), Some("1"));
    let log = control.log();
    let line = log
        .lines()
        .find(|line| line.contains("stream of reports refused"));
    let line = line.unwrap();
    assert!(
        line.contains("a-large-one") && line.contains("too_large"),
        "{line}"
    );
}
