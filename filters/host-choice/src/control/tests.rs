// SPDX-License-Identifier: Apache-2.0
use weir_harness::{A, B, resource, table, up};
use weir_tables::discovery::DeltaDiscoveryRequest;
use weir_tables::v1;

use super::*;
use crate::fake::{FakeHost, FakeRequest, RULES, Worker};

const UNAVAILABLE: u32 = 14;

/// A VM that has just opened its stream of tables.
fn opened() -> (Worker, u32) {
    let mut worker = Worker::of(&FakeHost::default(), RULES);
    worker.tick(50);
    let stream = worker.tables().expect("a stream");
    (worker, stream)
}

fn reports(worker: &Worker) -> Option<u32> {
    worker.host.stream("Stream")
}

/// weir-control has taken so many reports, and asks for this pause.
fn take(worker: &mut Worker, stream: u32, taken: u64, pause_ms: u32) {
    let answer = ReportAnswer { taken, pause_ms };
    worker
        .root
        .on_stream_message(stream, &answer.encode_to_vec());
}

#[test]
fn a_stream_begins_with_who_asks_and_what_is_wanted() {
    let (worker, stream) = opened();
    let (name, process) = worker.host.streams()[0].metadata.clone();
    assert_eq!(name, "x-weir-process");
    assert_eq!(process, shared::process(&worker.host).into_bytes());
    let sent: Vec<DeltaDiscoveryRequest> = worker.host.take_sent(stream);
    let asked = |kind: Kind| {
        let mut of_kind = sent.iter().filter(|sent| sent.type_url == kind.type_url());
        of_kind
            .next()
            .map(|sent| sent.resource_names_subscribe.clone())
    };
    assert_eq!(asked(Kind::Table), Some(vec!["rules".to_owned()]));
    assert_eq!(asked(Kind::Shard), None, "of a table that is not here");
    assert_eq!(worker.host.metric("weir_filter_streams_opened_total"), 1);
    assert_eq!(
        worker.host.metric("weir_filter_connected"),
        0,
        "nothing came"
    );
}

#[test]
fn a_good_table_is_taken_into_shared_data_and_acknowledged() {
    let (mut worker, _) = opened();
    let answer = worker.send(&[resource(&table(1, up(&[A])))]);
    assert_eq!(
        (answer.error_detail, answer.response_nonce.as_str()),
        (None, "nonce-7")
    );
    let (index, _) = shared::index(&worker.host, None).unwrap();
    assert_eq!(index.get(Kind::Table, "rules").unwrap().version, 1);
    let request = FakeRequest::new(&[]);
    let _exchange = worker.ask(7, &request);
    assert_eq!(request.destination().as_deref(), Some(A), "without a tick");
    worker.tick(50);
    assert_eq!(worker.host.metric("weir_filter_connected"), 1);
}

#[test]
fn a_bad_table_is_refused_with_the_reason_and_the_last_good_one_stays() {
    let (mut worker, _) = opened();
    worker.push(&table(2, up(&[A])));
    let answer = worker.send(&[resource(&table(1, up(&[B])))]);
    let reason = answer.error_detail.expect("a NACK").message;
    assert!(reason.starts_with("rules: "), "{reason}");
    assert_eq!(worker.host.metric("weir_resources_refused_total"), 1);
    let log = worker.host.take_log();
    assert!(log[0].contains("the last good one stays"), "{log:?}");
    let request = FakeRequest::new(&[]);
    let _exchange = worker.ask(7, &request);
    assert_eq!(request.destination().as_deref(), Some(A));
}

#[test]
fn a_table_that_was_not_asked_for_is_not_kept() {
    let (mut worker, _) = opened();
    let mut other = table(1, up(&[A]));
    other.cluster = "search".into();
    assert_eq!(worker.send(&[resource(&other)]).error_detail, None);
    let (index, _) = shared::index(&worker.host, None).unwrap();
    assert!(index.entries.is_empty());
}

#[test]
fn a_message_that_is_no_response_or_of_no_stream_changes_nothing() {
    let (mut worker, stream) = opened();
    worker.host.take_sent::<DeltaDiscoveryRequest>(stream);
    worker.root.on_stream_message(stream, &[0xff]);
    worker.root.on_stream_message(stream + 1, &[]);
    let log = worker.host.take_log();
    assert_eq!(log.len(), 1, "{log:?}");
    assert!(
        worker
            .host
            .take_sent::<DeltaDiscoveryRequest>(stream)
            .is_empty()
    );
}

/// The name of the cluster is wrong, say.
#[test]
fn a_stream_that_cannot_be_opened_is_said_seldom_and_what_serves_meanwhile() {
    let mut worker = Worker::of(&FakeHost::default(), RULES);
    worker.host.set_upstream(false);
    let mut said = Vec::new();
    for _ in 0..400 {
        worker.tick(50);
        said.append(&mut worker.host.take_log());
    }
    // 20 s with pauses of 200 ms.
    assert_eq!(said.len(), 3, "{said:?}");
    for (line, tries) in said.iter().zip([16, 32, 64]) {
        assert!(line.contains(&format!("after {tries} tries")), "{line}");
        assert!(
            line.contains("has a cluster weir-control (control_cluster)"),
            "{line}"
        );
        assert!(line.ends_with("Envoy's own policy chooses"), "{line}");
    }
}

#[test]
fn a_stream_that_ends_is_opened_again_after_a_pause() {
    let (mut worker, stream) = opened();
    worker.push(&table(1, up(&[A])));
    worker.tick(50);
    let reports_before = reports(&worker).expect("a stream of reports");
    worker.root.on_stream_close(stream, UNAVAILABLE);
    let streams = worker.host.streams();
    assert!(
        streams[reports_before as usize].is_cancelled,
        "no tables, no reports"
    );
    let log = worker.host.take_log();
    let words =
        "(cluster weir-control, it worked before) ended with gRPC status 14; the last tables serve";
    assert!(log[0].ends_with(words), "{log:?}");
    let before = streams.len();
    worker.tick(0);
    assert_eq!(worker.host.streams().len(), before, "not at once");
    // The first pause is 100 ms at most.
    worker.tick(100);
    assert_eq!(worker.host.streams().len(), before + 1);
    let request = FakeRequest::new(&[]);
    let _exchange = worker.ask(7, &request);
    assert_eq!(
        request.destination().as_deref(),
        Some(A),
        "the last table serves"
    );
}

#[test]
fn a_stream_that_was_superseded_waits_for_a_lease() {
    let (mut worker, stream) = opened();
    worker.push(&table(1, up(&[A])));
    worker.root.on_stream_close(stream, ABORTED);
    let before = worker.host.streams().len();
    for _ in 0..9 {
        worker.tick(100);
    }
    assert_eq!(worker.host.streams().len(), before, "900 ms");
    for _ in 0..12 {
        worker.tick(100);
    }
    assert!(worker.tables().is_some_and(|newer| newer > stream), "2.1 s");
}

#[test]
fn who_is_refused_after_it_was_answered_does_not_ask_again_at_once() {
    const RESOURCE_EXHAUSTED: u32 = 8;
    let (mut worker, stream) = opened();
    worker.push(&table(1, up(&[A])));
    worker.root.on_stream_close(stream, RESOURCE_EXHAUSTED);
    let before = worker.host.streams().len();
    for _ in 0..15 {
        worker.tick(100);
    }
    assert_eq!(worker.host.streams().len(), before, "1.5 s");
    for _ in 0..18 {
        worker.tick(100);
    }
    assert!(worker.tables().is_some_and(|newer| newer > stream), "3.3 s");
}

#[test]
fn a_cluster_without_hosts_is_tried_again_until_it_has_some() {
    let host = FakeHost::default();
    host.set_upstream(false);
    let mut worker = Worker::of(&host, RULES);
    for _ in 0..20 {
        worker.tick(50);
    }
    assert_eq!(host.streams().len(), 0);
    host.set_upstream(true);
    worker.tick(400);
    assert_eq!(
        host.streams().len(),
        1,
        "400 ms are the longest pause while there is no table"
    );
}

#[test]
fn a_report_waits_for_news_for_its_interval_and_for_the_answer_to_the_last() {
    let (mut worker, tables) = opened();
    worker.tick(50);
    assert_eq!(
        reports(&worker),
        None,
        "the stream of tables has not worked yet"
    );
    worker.push(&table(1, up(&[A])));
    worker.tick(50);
    let stream = reports(&worker).expect("a stream of reports");
    assert_ne!(stream, tables);
    let sent = |worker: &Worker| worker.host.take_sent::<v1::Report>(stream).len();
    assert_eq!(sent(&worker), 1, "at once");
    take(&mut worker, stream, 0, 0);
    worker.tick(1_000);
    assert_eq!(sent(&worker), 0, "the first is not taken");
    take(&mut worker, stream, 1, 0);
    worker.tick(0);
    assert_eq!(sent(&worker), 1);
    take(&mut worker, stream, 2, 0);
    worker.tick(900);
    assert_eq!(sent(&worker), 0, "nothing is new");
    worker.tick(100);
    assert_eq!(sent(&worker), 1, "it lives");
    take(&mut worker, stream, 3, 0);
    let request = FakeRequest::new(&[]);
    let _exchange = worker.ask(7, &request);
    worker.tick(100);
    assert_eq!(sent(&worker), 1, "news");
    let mut told = 0;
    for number in 0..20 {
        take(&mut worker, stream, 4 + told, 1_000);
        let _another = worker.ask(8 + number, &request);
        worker.tick(100);
        told += sent(&worker) as u64;
    }
    assert_eq!(told, 5, "a few at once, then one in each pause");
}

#[test]
fn a_refused_stream_of_reports_is_counted_and_the_tables_go_on() {
    let (mut worker, tables) = opened();
    worker.push(&table(1, up(&[A])));
    worker.tick(50);
    let stream = reports(&worker).unwrap();
    worker.root.on_stream_close(stream, 3);
    let name = "weir_report_streams_ended_total{reason=refused}";
    assert_eq!(worker.host.metric(name), 1);
    assert_eq!(worker.tables(), Some(tables));
    let log = worker.host.take_log();
    assert!(log.iter().any(|line| line.contains("(refused)")), "{log:?}");
}

#[test]
fn a_table_that_nobody_wants_any_more_is_forgotten() {
    let host = FakeHost::default();
    let mut worker = Worker::of(&host, r#"{"clusters":{"rules":{},"search":{}}}"#);
    worker.tick(50);
    worker.push(&table(1, up(&[A])));
    let mut newer = crate::root::Root::new(2);
    let json = br#"{"clusters":{"search":{}}}"#;
    let tick = newer.on_configure(&host, json, || worker.vm.clone(), String::new);
    assert!(tick.is_some());
    worker.root.on_done();
    host.pass(Duration::from_millis(200));
    newer.on_tick(|_| None::<FakeRequest>);
    let (index, _) = shared::index(&host, None).unwrap();
    assert_eq!(index.entries, vec![]);
    let is_empty = shared::resource(&host, Kind::Table, "rules", |_, body| body.is_empty());
    assert_eq!(is_empty, Some(true), "its bytes are freed");
}
