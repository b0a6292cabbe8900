// SPDX-License-Identifier: Apache-2.0
//! What weir-control hears of the proxy's requests.

use std::collections::BTreeSet;

use prost::Message;
use weir_policy::{HostId, KeyHash};
use weir_tables::HOST_TABLE_TYPE;
use weir_tables::v1::{self, ClusterRecord};

use weir_harness::{
    A, B, C, Chosen, Proxy, RULES, SHARING, TICKS, ask, is_wasm, milliseconds, request, resource,
    table, up,
};
use weir_testkit::{GrpcStream, LogLevel};

pub(crate) const INTERVAL: std::time::Duration = milliseconds(1_050);

/// The whole record of the only VM that had requests, after a report.
fn active(proxy: &Proxy) -> (u64, ClusterRecord) {
    proxy.run(INTERVAL);
    let report = proxy.report();
    assert_eq!(report.proxy, "sidecar-1");
    assert_eq!(
        report.records.len(),
        proxy.telling(1),
        "also of those without"
    );
    let mut active = proxy.records().into_iter().filter(|record| {
        record
            .clusters
            .iter()
            .any(|cluster| !cluster.offered.is_empty())
    });
    let record = active.next().expect("a VM with requests");
    assert!(active.next().is_none());
    (record.epoch, record.clusters.into_iter().next().unwrap())
}

fn offered(cluster: &ClusterRecord) -> u64 {
    cluster.offered.iter().map(|offered| offered.count).sum()
}

pub(crate) fn shed(cluster: &ClusterRecord) -> u64 {
    cluster.shed.iter().map(|shed| shed.count).sum()
}

#[test]
fn counters_are_absolute_within_the_life_of_a_vm() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let mut epochs = BTreeSet::new();
    for round in 1..=3 {
        ask(proxy.worker(), "key").answered_by(A);
        let (epoch, cluster) = active(&proxy);
        epochs.insert(epoch);
        assert_eq!(cluster.cluster, "rules");
        assert_eq!(offered(&cluster), round);
        assert_eq!(
            (cluster.hosts[0].assigned, cluster.hosts[0].ok),
            (round, round)
        );
    }
    assert_eq!(epochs.len(), 1);
}

#[test]
fn a_change_of_configuration_does_not_start_the_counters_again() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    ask(proxy.worker(), "key").answered_by(A);
    let (epoch, _) = active(&proxy);
    let other = r#"{"clusters":{"others":{}}}"#;
    for vm in &proxy.vms {
        let old = vm.roots()[0];
        vm.configure(other).unwrap();
        vm.retire(old).unwrap();
    }
    // A worker of the other shell hears of it when it has a request.
    let not_ours = ask(proxy.worker(), "key");
    proxy.run(TICKS);
    proxy.ads().remove(HOST_TABLE_TYPE, &["others"]);
    proxy.run(INTERVAL);
    not_ours.finish().unwrap();
    let names: BTreeSet<_> = proxy
        .report()
        .records
        .into_iter()
        .flat_map(|record| record.clusters)
        .map(|cluster| cluster.cluster)
        .collect();
    assert_eq!(
        names,
        BTreeSet::from(["others".into()]),
        "rules is no longer wanted"
    );
    for vm in &proxy.vms {
        let old = vm.roots()[0];
        vm.configure(RULES).unwrap();
        vm.retire(old).unwrap();
    }
    proxy.run(TICKS);
    proxy.ads().accepts(&[resource(&table(2, up(&[A])))]);
    proxy.run(INTERVAL);
    proxy.ads().accepts(&[resource(&table(2, up(&[A])))]);
    proxy.run(SHARING);
    ask(proxy.worker(), "key").answered_by(A);
    let (same, cluster) = active(&proxy);
    assert_eq!((same, offered(&cluster)), (epoch, 2));
}

#[test]
fn shed_requests_are_offered_and_counted_as_shed() {
    let proxy = Proxy::with(RULES, &[dagor(0)]);
    for _ in 0..3 {
        let request = ask(proxy.worker(), "key");
        assert_eq!(request.reason(), "overloaded");
        request.finish().unwrap();
    }
    let (_, cluster) = active(&proxy);
    assert_eq!((offered(&cluster), shed(&cluster)), (3, 3));
    assert!(cluster.hosts.is_empty());
}

fn dagor(level: u32) -> v1::HostTable {
    let mut dagor = table(1, up(&[A]));
    dagor.policy.as_mut().unwrap().overload = v1::Overload::Dagor.into();
    dagor.hosts[0].admission_level = Some(level);
    dagor
}

#[test]
fn ranks_admitted_by_each_host_are_told_under_dagor_alone() {
    let mut breaker = table(1, up(&[A]));
    breaker.policy.as_mut().unwrap().overload = v1::Overload::Breaker.into();
    let cases = [
        (dagor(4096), true),
        (breaker, false),
        (table(1, up(&[A])), false),
    ];
    for (table, told) in cases {
        let proxy = Proxy::with(RULES, &[table]);
        for priority in ["high", "high", "low"] {
            request(
                proxy.worker(),
                &[("x-weir-priority", priority), ("x-weir-user", "u")],
            );
        }
        let (_, cluster) = active(&proxy);
        let counts = |ranks: &[v1::RankCount]| -> Vec<(u32, u64)> {
            ranks
                .iter()
                .map(|rank| (rank.rank / 128, rank.count))
                .collect()
        };
        assert_eq!(counts(&cluster.offered), [(0, 2), (16, 1)]);
        let admitted = counts(&cluster.hosts[0].admitted);
        assert_eq!(admitted, if told { vec![(0, 2), (16, 1)] } else { vec![] });
    }
}

#[test]
fn assignments_are_told_once_for_a_key_and_host_newest_first() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A, B, C]))]);
    let mut sent = Vec::new();
    for key in ["a", "b", "a", "c", "b"] {
        let request = ask(proxy.worker(), key);
        sent.push((
            KeyHash::of(key.as_bytes()).0,
            HostId::of(&request.first()).0,
        ));
        // Sent again sooner it is not put down anew.
        proxy.run(milliseconds(1_500));
    }
    sent.reverse();
    let mut expected: Vec<_> = Vec::new();
    for assignment in sent {
        if !expected.contains(&assignment) {
            expected.push(assignment);
        }
    }
    let (_, cluster) = active(&proxy);
    let told: Vec<_> = cluster
        .assignments
        .iter()
        .map(|told| (told.key, told.host_id))
        .collect();
    assert_eq!(told, expected);
    assert!(cluster.assignments.is_sorted_by_key(|told| told.age_ms));
}

#[test]
fn no_more_assignments_are_told_than_the_format_allows_and_none_that_ended() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A, B]))]);
    for key in 0..1_500 {
        ask(proxy.worker(), &key.to_string()).finish().unwrap();
    }
    assert_eq!(active(&proxy).1.assignments.len(), 1_024);
    proxy.run(milliseconds(10_000));
    if is_wasm() {
        assert!(active(&proxy).1.assignments.is_empty());
    }
    // A worker of the other shell looks at its own again when it has a request.
    ask(proxy.worker(), "late").finish().unwrap();
    assert_eq!(active(&proxy).1.assignments.len(), 1);
}

#[test]
fn a_proxy_without_news_reports_each_second_and_goes_on_after_the_stream_was_lost() {
    let configuration = r#"{"clusters":{"rules":{}}}"#;
    let proxy = Proxy::with(configuration, &[table(1, up(&[A]))]);
    let streams = proxy.streams("weir.v1.Reports");
    assert_eq!(streams[0].take_sent().len(), 1, "at once");
    proxy.run(milliseconds(2_000));
    assert_eq!(streams[0].take_sent().len(), 2);
    streams[0].close(14, "gone").unwrap();
    proxy.run(milliseconds(600));
    assert_eq!(proxy.report().records.len(), proxy.telling(0));
}

/// What a stream was told since the last time, and how many reports it was in.
pub(crate) fn told(stream: &GrpcStream) -> Vec<v1::Report> {
    let sent = stream.take_sent();
    let decode = |sent: &Vec<u8>| v1::Report::decode(sent.as_slice()).unwrap();
    sent.iter().map(decode).collect()
}

/// Counters by rank of hosts.
pub(crate) fn rows(report: &v1::Report) -> usize {
    let clusters = report.records.iter().flat_map(|vm| &vm.clusters);
    let hosts = clusters.flat_map(|cluster| &cluster.hosts);
    hosts.map(|host| host.admitted.len()).sum()
}

#[test]
fn a_stream_is_told_everything_at_first_and_then_what_has_changed() {
    let proxy = Proxy::with(RULES, &[dagor(4096)]);
    let stream = proxy.streams("Reports").remove(0);
    ask(proxy.worker(), "key").answered_by(A);
    proxy.run(INTERVAL);
    let reports = told(&stream);
    assert_eq!(reports.iter().map(rows).sum::<usize>(), 1);
    assert!(reports.iter().all(|report| report.changes));
    proxy.run(INTERVAL);
    let reports = told(&stream);
    assert_eq!(reports.iter().map(rows).sum::<usize>(), 0, "nothing is new");
    let vms = reports.iter().map(|report| report.records.len());
    assert!(vms.eq([proxy.telling(1)]), "and all VMs live");
    stream.close(14, "gone").unwrap();
    proxy.run(milliseconds(600));
    assert_eq!(rows(&proxy.report()), 1, "a new stream was told nothing");
}

#[test]
fn a_stream_of_reports_that_is_refused_is_logged_and_counted_here_too() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let stream = proxy.streams("Reports").remove(0);
    let ended = |reason: &str| {
        let name = format!("weir_report_streams_ended_total;.;reason=.={reason};.;");
        proxy.host.metrics().counter(&name)
    };
    stream.close(11, "too large").unwrap();
    assert_eq!((ended("refused"), ended("lost")), (1, 0));
    let owner = &proxy.vms[proxy.owner().unwrap()];
    let logged = owner.logs_at(LogLevel::Warn);
    let logged = logged.last().unwrap();
    assert!(logged.contains("(refused) with gRPC status 11"), "{logged}");
    // Who is refused does not come back sooner.
    proxy.run(milliseconds(1500));
    assert!(proxy.streams("Reports").is_empty());
    proxy.run(milliseconds(1800));
    proxy.streams("Reports")[0].close(14, "gone").unwrap();
    assert_eq!((ended("refused"), ended("lost")), (1, 1));
}

#[test]
fn a_host_that_left_is_forgotten_when_nothing_of_it_is_in_flight() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let open = ask(proxy.worker(), "key");
    proxy.run(SHARING);
    proxy.ads().accepts(&[resource(&table(2, up(&[B])))]);
    proxy.run(SHARING);
    assert_eq!(proxy.in_flight(A), 1);
    open.answered_by(A);
    proxy.run(SHARING);
    let records = proxy.records();
    let clusters = records.iter().flat_map(|record| &record.clusters);
    assert_eq!(clusters.flat_map(|cluster| &cluster.hosts).count(), 0);
}
