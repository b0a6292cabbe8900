// SPDX-License-Identifier: Apache-2.0
//! Two teams, A and B, each with a cluster, and what the certificate of one is worth at the other's.

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Status, Streaming};
use weir_tables::v1::{
    ClusterRecord, HostRecord, HostRow, NodeReport, RankCount, Report, ReportAnswer, VmRecord,
    nodes_client::NodesClient, reports_client::ReportsClient,
};
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE};

use crate::certificates::{Authority, Pair};
use crate::program::{Program, until};
use crate::sidecar::{Tables, connect};
use crate::waits::end;

const A: &str = "spiffe://mesh/ns/a/sidecar";
const B: &str = "spiffe://mesh/ns/b/sidecar";
const NODE_A: &str = "node-a.example";
const HOST_A: &str = "127.0.0.1:1";
const HOST_B: &str = "127.0.0.1:2";

/// A's cap is class 8.
const RULES: &str = "authorization:\n\
    - { identity: \"spiffe://mesh/ns/a/*\", clusters: [a], what: [tables, keys, report], max_priority: 8 }\n\
    - { identity: \"spiffe://mesh/ns/b/*\", clusters: [b], what: [tables, keys, report] }\n\
    - { identity: node-a.example, clusters: [a], what: [capacity], hosts: [127.0.0.1] }\n";

struct World {
    control: Program,
    authority: Authority,
}

/// weir-control with these rules.
fn world(rules: &str) -> World {
    let authority = Authority::new();
    let pair = authority.sign("weir-control");
    let files = [
        ("ca.pem", &*authority.certificate),
        ("control.pem", &*pair.certificate),
        ("control.key", &*pair.key),
    ];
    let control = Program::start(&config(rules), &files);
    World { control, authority }
}

fn config(rules: &str) -> String {
    let cluster = |host: &str| {
        format!(
            "{{ cache_shards: 1, policy: {{ stale_after: 300ms }}, hosts: [ {{ address: \"{host}\" }} ] }}"
        )
    };
    format!(
        "xds: {{ listen: \"127.0.0.1:0\", tls: {{ certificate: control.pem, key: control.key, client_ca: ca.pem }} }}\n\
         admin: {{ listen: \"127.0.0.1:0\" }}\nclusters: {{ a: {}, b: {} }}\n{rules}",
        cluster(HOST_A),
        cluster(HOST_B)
    )
}

impl World {
    async fn tables(&self, whose: &str, proxy: &str, kind: &str, names: &[&str]) -> Tables {
        let pair = self.authority.sign(whose);
        self.tables_with(&pair, proxy, kind, names).await.unwrap()
    }

    async fn tables_with(
        &self,
        pair: &Pair,
        proxy: &str,
        kind: &str,
        names: &[&str],
    ) -> Result<Tables, Status> {
        let channel = connect(self.control.xds, &self.authority, pair).await;
        Tables::open(channel.unwrap(), proxy, kind, names).await
    }

    /// A report stream and where its reports go.
    async fn reports(
        &self,
        whose: &str,
    ) -> (
        mpsc::Sender<Report>,
        Result<Streaming<ReportAnswer>, Status>,
    ) {
        let pair = self.authority.sign(whose);
        let channel = connect(self.control.xds, &self.authority, &pair).await;
        let (reports, outbound) = mpsc::channel(8);
        let mut client = ReportsClient::new(channel.unwrap());
        let outbound = Request::new(ReceiverStream::new(outbound));
        let answer = client.stream(outbound).await;
        (reports, answer.map(tonic::Response::into_inner))
    }

    /// The answer to a governor's first word.
    async fn capacity(&self, whose: &str, cluster: &str, host: &str) -> Result<HostRow, Status> {
        let pair = self.authority.sign(whose);
        let channel = connect(self.control.xds, &self.authority, &pair).await;
        let (reports, outbound) = mpsc::channel(1);
        let report = NodeReport {
            cluster: cluster.to_owned(),
            host: host.to_owned(),
            capacity_millicores: 7000,
        };
        reports.send(report).await.unwrap();
        let mut client = NodesClient::new(channel.unwrap());
        let outbound = Request::new(ReceiverStream::new(outbound));
        let mut rows = client.stream(outbound).await?.into_inner();
        rows.message().await.map(Option::unwrap)
    }

    fn metric(&self, series: &str) -> f64 {
        let page = self.control.page("/metrics");
        let line = page.lines().find_map(|line| line.strip_prefix(series));
        line.map_or(0.0, |value| value.trim().parse().unwrap())
    }

    fn denied(&self, what: &str) -> f64 {
        self.metric(&format!("weir_control_denied_total{{what=\"{what}\"}}"))
    }

    fn counted(&self, cluster: &str, class: u8) -> f64 {
        self.metric(&format!(
            "weir_control_requests_total{{cluster=\"{cluster}\",class=\"{class}\"}}"
        ))
    }
}

/// Names of the resources and of those that are not there.
async fn told(tables: &mut Tables) -> (Vec<String>, Vec<String>) {
    let response = tables.next().await.unwrap();
    let resources = response.resources.into_iter();
    let mut names: Vec<String> = resources.map(|resource| resource.name).collect();
    names.sort();
    (names, response.removed_resources)
}

/// A VM's counters: so many requests of class 0 and of class 16 to each cluster.
fn report(proxy: &str, clusters: [&str; 2], count: u64) -> Report {
    let rank = |class: u32| RankCount {
        rank: class * 128,
        count,
    };
    let cluster = |name: &str| ClusterRecord {
        cluster: name.to_owned(),
        offered: vec![rank(0), rank(16)],
        hosts: vec![HostRecord {
            address: HOST_A.to_owned(),
            ..Default::default()
        }],
        ..Default::default()
    };
    Report {
        proxy: proxy.to_owned(),
        records: vec![VmRecord {
            epoch: 1,
            deadline_ns: u64::MAX,
            published_ns: count,
            clusters: clusters.map(cluster).into(),
            ..Default::default()
        }],
        ..Default::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_one_team_reads_neither_tables_nor_keys_of_another() {
    let world = world(RULES);
    for kind in [HOST_TABLE_TYPE, CACHE_SHARD_TYPE] {
        let name = |cluster: &str| match kind {
            HOST_TABLE_TYPE => cluster.to_owned(),
            _ => format!("{cluster}/1/0"),
        };
        let (a, b) = (name("a"), name("b"));
        // By name, beside its own, and by a wildcard.
        let mut named = world.tables(A, "proxy-a", kind, &[&a, &b]).await;
        assert_eq!(told(&mut named).await, (vec![a.clone()], vec![b.clone()]));
        let mut all = world.tables(A, "proxy-a", kind, &[]).await;
        assert_eq!(told(&mut all).await, (vec![a], vec![]));
        let mut theirs = world.tables(B, "proxy-b", kind, &[]).await;
        assert_eq!(told(&mut theirs).await, (vec![b], vec![]));
    }
    assert_eq!((world.denied("tables"), world.denied("keys")), (1.0, 1.0));
    let log = world.control.log();
    let lines = log.lines().filter(|line| line.contains("denied"));
    let of_a: Vec<&str> = lines.filter(|line| line.contains(A)).collect();
    assert_eq!(of_a.len(), 1, "a line a minute: {log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn whom_no_rule_names_is_denied_and_without_rules_everybody_is_let_in() {
    let strict = world(RULES);
    for stranger in [
        "spiffe://mesh/ns/c/sidecar",
        "spiffe://mesh/ns/a",
        "sidecar-1",
    ] {
        let mut tables = strict.tables(stranger, "p", HOST_TABLE_TYPE, &[]).await;
        let status = tables.next().await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
        assert!(status.message().contains(stranger), "{status:?}");
        let (reports, answers) = strict.reports(stranger).await;
        reports.send(report("p", ["a", "b"], 1)).await.unwrap();
        let status = end(&mut answers.unwrap()).await;
        assert_eq!(status.code(), Code::PermissionDenied);
        let status = strict.capacity(stranger, "a", HOST_A).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied);
    }
    assert_eq!(strict.denied("report"), 3.0);
    assert!(strict.metric("weir_control_reporting_proxies ") < 1.0);

    let open = world("");
    let mut all = open.tables(A, "p", HOST_TABLE_TYPE, &[]).await;
    let both = vec!["a".to_owned(), "b".to_owned()];
    assert_eq!(told(&mut all).await, (both, vec![]));
    open.capacity(A, "b", HOST_B).await.unwrap();
    assert!(open.control.log().contains("no rules of authorization"));
    assert!(!strict.control.log().contains("no rules of authorization"));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_of_one_team_does_not_speak_as_the_proxy_of_another() {
    let world = world(RULES);
    let mut theirs = world.tables(B, "proxy-b", HOST_TABLE_TYPE, &["b"]).await;
    theirs.next().await.unwrap();
    let mut ours = world.tables(A, "proxy-b", HOST_TABLE_TYPE, &["a"]).await;
    let status = ours.next().await.unwrap_err();
    assert_eq!(status.code(), Code::PermissionDenied);
    let (reports, answers) = world.reports(A).await;
    reports
        .send(report("proxy-b", ["a", "b"], 1))
        .await
        .unwrap();
    let status = end(&mut answers.unwrap()).await;
    assert_eq!(status.code(), Code::PermissionDenied);
    assert!(status.message().contains("proxy-b"), "{status:?}");
    assert_eq!(world.denied("proxy"), 2.0);
    // Nothing of it ended B's stream; B itself supersedes it, with another certificate of the same name.
    theirs.next().await.unwrap();
    let mut again = world.tables(B, "proxy-b", HOST_TABLE_TYPE, &["b"]).await;
    again.next().await.unwrap();
    assert_eq!(theirs.end().await.code(), Code::Aborted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_report_counts_in_the_teams_own_clusters_and_up_to_its_class() {
    let world = world(RULES);
    let (reports, answers) = world.reports(A).await;
    let _answers = answers.unwrap();
    // Counting begins with the first report of a proxy.
    for count in [0, 5] {
        reports
            .send(report("proxy-a", ["a", "b"], count))
            .await
            .unwrap();
        until("a report", || {
            let taken = world.metric("weir_control_reports_total ");
            (taken > count.min(1) as f64).then_some(())
        });
    }
    let of_class = |cluster, class| world.counted(cluster, class);
    let ours = [of_class("a", 0), of_class("a", 8), of_class("a", 16)];
    assert_eq!(ours, [0.0, 5.0, 5.0]);
    let theirs = [of_class("b", 0), of_class("b", 8), of_class("b", 16)];
    assert_eq!(theirs, [0.0; 3]);
    assert_eq!(world.denied("report"), 2.0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_governor_sets_the_capacity_of_its_own_hosts_alone() {
    let world = world(RULES);
    world.capacity(NODE_A, "a", HOST_A).await.unwrap();
    for (whose, cluster, host) in [(NODE_A, "b", HOST_B), (A, "a", HOST_A), (B, "b", HOST_B)] {
        let status = world.capacity(whose, cluster, host).await.unwrap_err();
        assert_eq!(status.code(), Code::PermissionDenied, "{whose} {host}");
    }
    assert_eq!(world.denied("capacity"), 3.0);
    let tables = world.control.tables();
    let capacity = |cluster: &str| {
        let host = &tables["clusters"][cluster]["hosts"][0];
        host["capacity_millicores"].clone()
    };
    assert_eq!((capacity("a"), capacity("b")), (7000.into(), 0.into()));
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_say_who_each_proxy_is_and_new_rules_count_for_open_streams() {
    let world = world(RULES);
    let mut open = world.tables(A, "proxy-a", HOST_TABLE_TYPE, &["a"]).await;
    open.next().await.unwrap();
    let proxy = world.control.tables()["proxies"][0].clone();
    assert_eq!(proxy["identity"], A);
    let may =
        serde_json::json!({ "tables": ["a"], "keys": ["a"], "report": ["a"], "capacity": [] });
    assert_eq!(proxy["may"], may);

    let without = RULES.replacen("ns/a/*", "ns/z/*", 1);
    std::fs::write(world.control.path("c.yaml"), config(&without)).unwrap();
    assert_eq!(open.end().await.code(), Code::PermissionDenied);
}
