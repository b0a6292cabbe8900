// SPDX-License-Identifier: Apache-2.0
//! What answers, disconnects and retries teach, and that every request that was counted in is counted out.

use weir_tables::v1::{self, HostRecord};
use weir_testkit::Action;

use weir_harness::{
    A, B, C, Chosen, Proxy, RULES, SHARING, TICKS, ask, busy, milliseconds, request, resource,
    table, up,
};

/// Envoy's flag for a connection that could not be made.
const CONNECTION_FAILURE: u64 = 0x20;
/// Envoy's flag for a caller that went away.
const CALLER_GONE: u64 = 0x100;

fn counters(proxy: &Proxy, address: &str) -> HostRecord {
    let records = proxy.records();
    let mut hosts = records
        .into_iter()
        .flat_map(|record| record.clusters)
        .flat_map(|cluster| cluster.hosts)
        .filter(|host| host.address == address);
    let host = hosts.next().expect("the host was sent a request");
    assert!(hosts.next().is_none(), "by one VM");
    host
}

#[test]
fn every_ending_takes_the_request_out_of_those_in_flight() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let open: Vec<_> = (0..6).map(|_| ask(proxy.worker(), "key")).collect();
    proxy.run(SHARING);
    assert_eq!(proxy.in_flight(A), 6);
    for (request, status) in open.iter().zip(["200", "302", "404", "500"]) {
        request.answer(A, &[(":status", status)]);
        request.finish().unwrap();
    }
    open[4].set_property(&["response", "flags"], CALLER_GONE.to_le_bytes());
    open[4].finish().unwrap();
    // A reset after an answer of Envoy's own.
    open[5].set_property(&["response", "flags"], CONNECTION_FAILURE.to_le_bytes());
    open[5].response([(":status", "503")]).unwrap();
    open[5].finish().unwrap();
    proxy.run(SHARING);
    let counted = counters(&proxy, A);
    assert_eq!(counted.in_flight, 0);
    let endings = (
        counted.ok,
        counted.client_error,
        counted.server_error,
        counted.no_answer,
    );
    assert_eq!((counted.assigned, endings), (6, (2, 1, 1, 2)));
    assert_eq!(
        counted.unconnected, 1,
        "a caller that went away says nothing of the host"
    );
}

#[test]
fn a_host_that_failed_comes_last_for_a_moment() {
    let proxy = Proxy::with(RULES, &[table(1, vec![busy(A, 0, 0), busy(B, 50, 0)])]);
    let failing = request(proxy.worker(), &[]);
    assert_eq!(failing.destination(), [A, B]);
    failing.set_property(&["response", "flags"], CONNECTION_FAILURE.to_le_bytes());
    failing.finish().unwrap();
    let next = request(proxy.worker(), &[]);
    assert_eq!(next.destination(), [B, A]);
    next.answered_by(B);
    proxy.run(milliseconds(1_100));
    assert_eq!(request(proxy.worker(), &[]).destination(), [A, B]);
}

#[test]
fn envoys_own_answer_to_grpc_is_no_answer_of_the_host() {
    for (flags, next, endings) in [
        (CONNECTION_FAILURE, B, (0, 1, 1)),
        (0x4, A, (0, 1, 0)),
        // The host's own refusal.
        (0, A, (1, 0, 0)),
    ] {
        let proxy = Proxy::with(RULES, &[table(1, vec![busy(A, 0, 0), busy(B, 50, 0)])]);
        let failing = request(proxy.worker(), &[("content-type", "application/grpc")]);
        assert_eq!(failing.destination(), [A, B]);
        failing.set_property(&["response", "flags"], u64::to_le_bytes(flags));
        failing.answer(A, &[(":status", "200"), ("grpc-status", "14")]);
        failing.finish().unwrap();
        assert_eq!(request(proxy.worker(), &[]).first(), next, "{flags:#x}");
        proxy.run(SHARING);
        let counted = counters(&proxy, A);
        let seen = (counted.ok, counted.no_answer, counted.unconnected);
        assert_eq!(seen, endings, "{flags:#x}");
    }
}

#[test]
fn an_answer_from_the_second_host_moves_the_request_there_and_the_first_is_suspect() {
    let proxy = Proxy::with(
        RULES,
        &[table(1, vec![busy(A, 0, 0), busy(B, 0, 0), busy(C, 99, 0)])],
    );
    let retried = ask(proxy.worker(), "key");
    let named = retried.destination();
    retried.answer(&named[1], &[(":status", "200")]);
    proxy.run(SHARING);
    assert_eq!(proxy.in_flight(&named[0]), 0);
    assert_eq!(proxy.in_flight(&named[1]), 1);
    assert_eq!(counters(&proxy, &named[0]).no_answer, 1);
    let again = ask(proxy.worker(), "key");
    assert_eq!(again.first(), named[1], "which has the key now, and works");
    assert_eq!(again.destination()[2], named[0]);
    again.answered_by(&named[1]);
    retried.finish().unwrap();
    proxy.run(SHARING);
    let taken = counters(&proxy, &named[1]);
    assert_eq!((taken.in_flight, taken.assigned, taken.ok), (0, 2, 2));
}

#[test]
fn an_answer_from_a_host_that_is_in_no_table_is_counted_nowhere() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let request = ask(proxy.worker(), "key");
    request.answered_by("192.0.2.1:1");
    proxy.run(SHARING);
    let first = counters(&proxy, A);
    assert_eq!(
        (first.in_flight, first.assigned, first.no_answer),
        (0, 1, 1)
    );
    assert_eq!(proxy.in_flight("192.0.2.1:1"), 0);
}

fn breaker(version: u64) -> v1::HostTable {
    let mut breaker = table(version, vec![busy(A, 1, 0), busy(B, 2, 0)]);
    let policy = breaker.policy.as_mut().unwrap();
    policy.overload = v1::Overload::Breaker.into();
    policy.breaker_queued_jobs = Some(10);
    breaker
}

fn orca(in_progress: u32, queued: u32) -> String {
    format!(
        "TEXT named_metrics.weir.in_progress={in_progress},named_metrics.weir.queued.0={queued}"
    )
}

#[test]
fn the_load_on_an_answer_counts_over_an_older_table_in_every_vm() {
    let proxy = Proxy::with(RULES, &[breaker(1)]);
    let (asking, other) = (&proxy.vms[1], &proxy.vms[2]);
    let first = request(asking, &[]);
    assert_eq!(first.destination(), [A, B]);
    first.answer(
        A,
        &[(":status", "200"), ("endpoint-load-metrics", &orca(40, 30))],
    );
    first.finish().unwrap();
    assert_eq!(request(asking, &[]).destination(), [B], "at once");
    proxy.run(SHARING);
    assert_eq!(
        request(other, &[]).destination(),
        [B],
        "after it was shared"
    );

    proxy.run(milliseconds(1_000));
    let reports = proxy.reports();
    let loads: Vec<_> = reports
        .iter()
        .flat_map(|report| &report.records)
        .flat_map(|record| &record.clusters)
        .flat_map(|cluster| &cluster.hosts)
        .filter_map(|host| Some((host.address.as_str(), host.load.as_ref()?)))
        .collect();
    assert_eq!(
        loads.len(),
        1,
        "by the VM that had the answer, and nobody else: {loads:?}"
    );
    let (address, load) = loads[0];
    assert_eq!(
        (address, load.in_progress, load.queued.as_slice()),
        (A, 40, &[30][..])
    );
    assert!(load.age_ms <= 250, "{}", load.age_ms);

    // A newer table counts over the answer.
    proxy.ads().accepts(&[resource(&breaker(2))]);
    proxy.run(TICKS);
    assert_eq!(request(other, &[]).destination().len(), 2);
}

#[test]
fn load_that_is_nonsense_or_huge_is_ignored() {
    let proxy = Proxy::with(RULES, &[breaker(1)]);
    let huge = format!("TEXT {}", "x=1,".repeat(20_000));
    for value in [
        "TEXT named_metrics.weir.in_progress=NaN",
        "JSON {",
        "",
        &huge,
    ] {
        let sent = request(proxy.worker(), &[]);
        sent.answer(A, &[(":status", "200"), ("endpoint-load-metrics", value)]);
        sent.finish().unwrap();
        assert_eq!(request(proxy.worker(), &[]).destination().len(), 2);
    }
}

#[test]
fn a_host_that_leaves_the_table_with_a_request_in_flight_is_counted_to_the_end() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let open = ask(proxy.worker(), "key");
    assert_eq!(open.first(), A);
    proxy.ads().accepts(&[resource(&table(2, up(&[B])))]);
    proxy.run(SHARING);
    assert_eq!(proxy.in_flight(A), 1);
    assert_eq!(ask(proxy.worker(), "key").first(), B);
    open.answered_by(A);
    proxy.run(SHARING);
    assert_eq!(proxy.in_flight(A), 0);
    proxy.ads().accepts(&[resource(&table(3, up(&[A, B])))]);
    proxy.run(SHARING);
    assert_eq!(proxy.in_flight(A), 0);
}

#[test]
fn requests_of_an_old_configuration_end_like_all_others() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let open = ask(proxy.worker(), "key");
    let old = proxy.worker().roots()[0];
    proxy
        .worker()
        .configure(r#"{"clusters":{"rules":{}},"debug":true}"#)
        .unwrap();
    open.answered_by(A);
    proxy.worker().retire(old).unwrap();
    assert_eq!(open.action(), Action::Continue);
    proxy.run(SHARING);
    assert_eq!(proxy.in_flight(A), 0);
}
