// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use weir_harness::{A, B, busy, table};
use weir_policy::HostId;
use weir_tables::v1;

use super::*;
use crate::bounce::{BOUNCED, MAY_WAIT};
use crate::exchange::Exchange;
use crate::fake::{FakeHost, FakeRequest, Worker, counted};
use crate::root::Root;

const OK: &[(&str, &str)] = &[(":status", "200")];
const GIVEN_BACK: &[(&str, &str)] = &[
    (":status", "429"),
    (BOUNCED, "1"),
    (
        "endpoint-load-metrics",
        "TEXT named_metrics.weir.in_progress=9,named_metrics.weir.queued.0=5",
    ),
];

/// A proxy whose attempts are looked at. Its two hosts have four cores each; A is chosen before B.
struct Proxy {
    worker: Worker,
    attempts: Root<FakeHost>,
}

fn hosts(version: u64) -> v1::HostTable {
    let mut hosts = table(version, vec![busy(A, 0, 0), busy(B, 4, 0)]);
    for host in &mut hosts.hosts {
        host.capacity_millicores = 4_000;
    }
    let policy = hosts.policy.as_mut().unwrap();
    policy.selection = v1::Selection::Estimate.into();
    hosts
}

impl Proxy {
    fn new() -> Self {
        let worker = Worker::with(&hosts(1));
        let mut attempts = Root::new(2);
        let vm = || worker.vm.clone();
        let role = br#"{"role": "attempt", "clusters": {"rules": {}}}"#;
        let tick = attempts.on_configure(&worker.host, role, vm, String::new);
        assert!(tick.is_some());
        Self { worker, attempts }
    }

    fn ask(&mut self, request: &FakeRequest) -> Exchange<FakeHost> {
        self.worker.ask(7, request).0
    }

    /// Envoy tries the next host.
    fn attempt(&self, request: &FakeRequest) -> Attempt<FakeHost> {
        let mut attempt = Attempt::new(self.attempts.plugin());
        attempt.on_request(request);
        attempt
    }

    /// The first host named gives the request back.
    fn give_back(&self, request: &FakeRequest, mut attempt: Attempt<FakeHost>) {
        // Loads of one moment do not replace each other.
        self.worker.host.pass(Duration::from_millis(1));
        let named = request.destination().unwrap();
        let (first, _) = named.split_once(',').unwrap();
        request.answer(first, GIVEN_BACK);
        attempt.on_response(request);
    }

    fn in_flight(&self) -> [u32; 2] {
        [A, B].map(|host| self.worker.in_flight(host))
    }

    fn bounces(&self) -> i64 {
        self.worker.host.metric("weir_bounces_total")
    }
}

fn bound(request: &FakeRequest) -> Option<String> {
    request.header(Map::Request, MAY_WAIT)
}

#[test]
fn a_request_that_is_given_back_counts_at_the_next_host_at_once_with_the_load_that_was_told() {
    let mut proxy = Proxy::new();
    let request = FakeRequest::new(&[]);
    let mut exchange = proxy.ask(&request);
    assert_eq!(request.destination(), Some(format!("{A},{B}")));
    let offered = bound(&request).unwrap();
    let (micros, _) = offered.split_once(";id=").unwrap();
    let micros: u64 = micros.parse().unwrap();
    let expected = 249_744..=250_000;
    assert!(
        expected.contains(&micros),
        "a job of a second before it at four cores: {micros}"
    );
    assert_eq!(proxy.in_flight(), [1, 0]);
    let attempt = proxy.attempt(&request);
    proxy.give_back(&request, attempt);
    assert_eq!((proxy.in_flight(), proxy.bounces()), ([0, 1], 1));
    let told = proxy.worker.vm.enter(|vm| {
        let cluster = vm.cluster("rules").unwrap();
        let index = cluster.table().unwrap().index_of(HostId::of(A)).unwrap();
        cluster.load(index).unwrap().in_progress
    });
    assert_eq!(told, Some(9));

    let _last = proxy.attempt(&request);
    assert_eq!(bound(&request), None, "the last host has to take it");
    request.answer(B, OK);
    request.set_number(crate::host::Number::Attempts, 2);
    exchange.on_response(&request);
    exchange.on_end(&request);
    assert_eq!(proxy.in_flight(), [0, 0]);
    let record = proxy.worker.record();
    assert_eq!(counted(&record), (2, 2));
    let failed: Vec<_> = record
        .hosts
        .iter()
        .filter(|host| host.unconnected > 0)
        .collect();
    assert!(failed.is_empty(), "to give back is no failure: {failed:?}");
    let [a, b] = &record.hosts[..] else {
        panic!("{record:?}");
    };
    let of_a = (a.ok, a.client_error, a.server_error, a.no_answer);
    assert_eq!(of_a, (0, 1, 0, 0), "it answered 429");
    assert_eq!((b.ok, b.no_answer), (1, 0));
}

#[test]
fn a_host_that_fails_before_another_gives_the_request_back_has_failed() {
    let mut proxy = Proxy::new();
    let request = FakeRequest::new(&[]);
    let mut exchange = proxy.ask(&request);
    drop(proxy.attempt(&request));
    drop(proxy.attempt(&request));
    request.answer(B, OK);
    request.set_number(crate::host::Number::Attempts, 2);
    exchange.on_response(&request);
    exchange.on_end(&request);
    let record = proxy.worker.record();
    assert_eq!(
        record
            .hosts
            .iter()
            .map(|host| host.unconnected)
            .sum::<u64>(),
        1
    );
    assert_eq!((proxy.in_flight(), proxy.bounces()), ([0, 0], 0));
}

#[test]
fn an_exchange_that_goes_away_after_a_bounce_is_taken_back_where_it_is() {
    let mut proxy = Proxy::new();
    let request = FakeRequest::new(&[]);
    let exchange = proxy.ask(&request);
    let attempt = proxy.attempt(&request);
    proxy.give_back(&request, attempt);
    drop(exchange);
    let record = proxy.worker.record();
    assert_eq!((proxy.in_flight(), counted(&record)), ([0, 0], (2, 2)));
    let late = proxy.attempt(&request);
    proxy.give_back(&request, late);
    assert_eq!(proxy.bounces(), 1, "nobody knows it any more");
}

#[test]
fn nothing_is_offered_where_nobody_looks_at_attempts_or_the_request_cannot_be_sent_again() {
    let mut proxy = Proxy::new();
    let bounded = FakeRequest::new(&[("x-envoy-max-retries", "0")]);
    let _exchange = proxy.ask(&bounded);
    assert_eq!(bound(&bounded), None);
    let other = FakeRequest::new(&[(MAY_WAIT, "1;id=0000000000000001")]);
    let _attempt = proxy.attempt(&other);
    assert_eq!(bound(&other), None, "nobody here would know of a bounce");
    proxy.attempts.on_done();
    let request = FakeRequest::new(&[(MAY_WAIT, "1;id=0000000000000001")]);
    let _exchange = proxy.ask(&request);
    assert_eq!(bound(&request), None, "nor what its caller says of it");
    assert_eq!(proxy.in_flight(), [2, 0]);
}

#[test]
fn a_route_that_does_not_try_the_next_host_is_told_of_and_asked_no_more_for_a_minute() {
    let mut proxy = Proxy::new();
    let request = FakeRequest::new(&[]);
    let mut exchange = proxy.ask(&request);
    let attempt = proxy.attempt(&request);
    proxy.give_back(&request, attempt);
    exchange.on_response(&request);
    exchange.on_end(&request);
    let log = proxy.worker.host.take_log().join("\n");
    assert!(log.contains("retriable-headers"), "{log}");
    let record = proxy.worker.record();
    let unconnected = record.hosts.iter().map(|host| host.unconnected);
    assert_eq!(unconnected.sum::<u64>(), 0, "nobody else was tried");
    assert_eq!(proxy.worker.host.metric("weir_choices_ignored_total"), 0);
    assert_eq!(proxy.in_flight(), [0, 0]);
    let offered = |proxy: &mut Proxy| {
        let request = FakeRequest::new(&[]);
        let _exchange = proxy.ask(&request);
        bound(&request).is_some()
    };
    assert!(!offered(&mut proxy));
    proxy.worker.tick(59_000);
    assert!(!offered(&mut proxy));
    // The table is older than loads are believed by then.
    proxy.worker.push(&hosts(2));
    proxy.worker.tick(1_100);
    assert!(offered(&mut proxy));
}

#[test]
fn nothing_is_kept_of_requests_that_are_over() {
    let mut proxy = Proxy::new();
    let mut exchanges = Vec::new();
    for number in 0..8 {
        let request = FakeRequest::new(&[]);
        let mut exchange = proxy.ask(&request);
        let attempt = proxy.attempt(&request);
        proxy.give_back(&request, attempt);
        // Every second one ends as it should.
        if number % 2 == 0 {
            exchange.on_end(&request);
        }
        exchanges.push(exchange);
    }
    let known = |proxy: &Proxy| proxy.worker.vm.enter(|vm| vm.known_tries());
    assert_eq!((proxy.bounces(), known(&proxy)), (8, Some(4)));
    drop(exchanges);
    proxy.worker.tick(50);
    assert_eq!(known(&proxy), Some(0));
}

#[test]
fn however_many_hosts_are_named_two_may_give_the_request_back() {
    let mut proxy = Proxy::new();
    let addresses = (0..6u32).map(|number| format!("10.0.1.{number}:80"));
    let rows = addresses.zip(0..).map(|(address, more)| v1::Host {
        capacity_millicores: 4_000,
        ..busy(&address, 4 * more, 0)
    });
    let mut many = table(2, rows.collect());
    let policy = many.policy.as_mut().unwrap();
    policy.selection = v1::Selection::Estimate.into();
    policy.ranked_hosts = Some(6);
    proxy.worker.push(&many);
    proxy.worker.tick(1_100);
    let request = FakeRequest::new(&[]);
    let _exchange = proxy.ask(&request);
    assert_eq!(request.destination().unwrap().split(',').count(), 6);
    for attempt in 1..=4 {
        let mut looked_at = proxy.attempt(&request);
        assert_eq!(bound(&request).is_some(), attempt <= 2, "attempt {attempt}");
        if attempt <= 2 {
            proxy.worker.host.pass(Duration::from_millis(1));
            let named = request.destination().unwrap();
            let host = named.split(',').nth(attempt - 1).unwrap();
            request.answer(host, GIVEN_BACK);
            looked_at.on_response(&request);
        }
    }
}
