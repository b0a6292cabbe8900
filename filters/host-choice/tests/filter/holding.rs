// SPDX-License-Identifier: Apache-2.0
//! Requests that wait for a host.

use weir_tables::v1;
use weir_testkit::{Action, HttpStream};

use weir_harness::{
    A, B, Chosen, Proxy, RULES, TICKS, ask, cached, milliseconds, request, resource, table, up,
};

use crate::reports::shed;

/// One host that admits this many ranks, and requests wait half a second, at most four of them.
fn holding(version: u64, level: u32) -> v1::HostTable {
    let mut holding = table(version, up(&[A]));
    let policy = holding.policy.as_mut().unwrap();
    policy.overload = v1::Overload::Dagor.into();
    policy.holding = Some(v1::Holding {
        for_eligible_ms: Some(500),
        max_held: Some(4),
        ..Default::default()
    });
    holding.hosts[0].admission_level = Some(level);
    holding
}

fn push(proxy: &Proxy, table: &v1::HostTable) {
    proxy.ads().accepts(&[resource(table)]);
}

fn held(proxy: &Proxy) -> u64 {
    proxy.host.metrics().gauge("weir_held_requests")
}

fn ended(proxy: &Proxy, ending: &str) -> u64 {
    let metrics = proxy.host.metrics();
    metrics.counter(&format!("weir_held_total;.;reason=.={ending};.;"))
}

fn of(proxy: &Proxy, priority: &str) -> HttpStream {
    request(proxy.worker(), &[("x-weir-priority", priority)])
}

#[test]
fn a_request_that_nobody_admits_waits_until_a_host_opens_and_goes_there() {
    let proxy = Proxy::with(RULES, &[holding(1, 0)]);
    let waiting = ask(proxy.worker(), "key");
    waiting.body("all of it", true).unwrap();
    assert_eq!(waiting.action(), Action::Pause);
    assert_eq!(waiting.reason(), "held_for_eligible");
    assert_eq!((waiting.local_reply(), held(&proxy)), (None, 1));
    assert_eq!(waiting.request_body(), b"", "its body waits too");
    push(&proxy, &holding(2, 4096));
    proxy.run(TICKS);
    assert_eq!(waiting.action(), Action::Continue);
    assert_eq!(
        (waiting.destination(), waiting.reason()),
        (vec![A.to_owned()], "not_cached".into())
    );
    assert_eq!(waiting.request_body(), b"all of it");
    assert_eq!((held(&proxy), ended(&proxy, "sent")), (0, 1));
    proxy.run(milliseconds(100));
    assert_eq!(proxy.in_flight(A), 1);
    waiting.answered_by(A);
    proxy.run(milliseconds(100));
    assert_eq!(proxy.in_flight(A), 0);
}

#[test]
fn a_request_is_shed_when_its_time_is_over() {
    let proxy = Proxy::with(RULES, &[holding(1, 0)]);
    let waiting = ask(proxy.worker(), "key");
    proxy.run(milliseconds(440));
    assert_eq!(waiting.local_reply(), None);
    proxy.run(milliseconds(110));
    let reply = waiting.local_reply().unwrap();
    assert_eq!(
        (reply.status, reply.details.as_str()),
        (429, "weir_overloaded")
    );
    assert_eq!(waiting.reason(), "overloaded");
    assert!(waiting.response_header("retry-after").is_some());
    waiting.finish().unwrap();
    assert_eq!((held(&proxy), ended(&proxy, "shed")), (0, 1));
    proxy.run(milliseconds(1_100));
    let reports = proxy.reports();
    let records = reports.iter().flat_map(|report| &report.records);
    let clusters: Vec<_> = records.flat_map(|record| &record.clusters).collect();
    let held = clusters.iter().map(|cluster| cluster.held).max();
    // Told once, when it has risen.
    let shed: u64 = clusters.iter().map(|cluster| shed(cluster)).sum();
    assert_eq!((held, shed), (Some(1), 1));
}

#[test]
fn a_request_waits_no_longer_than_its_caller() {
    let proxy = Proxy::with(RULES, &[holding(1, 0)]);
    for (header, value) in [
        ("x-envoy-expected-rq-timeout-ms", "100"),
        ("x-envoy-upstream-rq-timeout-ms", "100"),
    ] {
        let waiting = request(proxy.worker(), &[(header, value)]);
        assert_eq!(waiting.action(), Action::Pause);
        proxy.run(milliseconds(160));
        assert_eq!(waiting.local_reply().unwrap().status, 429, "{header}");
    }
    for none in ["0", "soon", ""] {
        let waiting = request(proxy.worker(), &[("x-envoy-expected-rq-timeout-ms", none)]);
        proxy.run(milliseconds(160));
        assert_eq!(waiting.local_reply(), None, "{none:?} is no deadline");
        waiting.finish().unwrap();
    }
}

#[test]
fn the_time_that_went_by_is_taken_off_what_the_caller_allows_the_host() {
    let proxy = Proxy::with(RULES, &[holding(1, 0)]);
    let waiting = request(proxy.worker(), &[("x-envoy-upstream-rq-timeout-ms", "400")]);
    proxy.run(milliseconds(200));
    push(&proxy, &holding(2, 4096));
    proxy.run(TICKS);
    let left = waiting.request_header("x-envoy-upstream-rq-timeout-ms");
    let left: u64 = left.unwrap().parse().unwrap();
    assert!((100..=200).contains(&left), "{left}");
}

#[test]
fn who_has_gone_waits_no_longer() {
    let proxy = Proxy::with(RULES, &[holding(1, 0)]);
    let waiting = ask(proxy.worker(), "key");
    waiting.finish().unwrap();
    assert_eq!((held(&proxy), ended(&proxy, "gone")), (0, 1));
    push(&proxy, &holding(2, 4096));
    proxy.run(milliseconds(600));
    assert_eq!(proxy.in_flight(A), 0);
    assert_eq!(ended(&proxy, "sent"), 0);
}

#[test]
fn the_most_important_goes_first_and_later_ones_do_not_overtake() {
    let proxy = Proxy::with(RULES, &[holding(1, 0)]);
    let low = of(&proxy, "low");
    let high = of(&proxy, "high");
    let also_low = of(&proxy, "low");
    push(&proxy, &holding(2, 4096));
    // One host: one of them a tick.
    proxy.run(milliseconds(1));
    let order = || [&high, &low, &also_low].map(|one| one.action() == Action::Continue);
    let mut seen = vec![order()];
    for _ in 0..8 {
        proxy.run(milliseconds(25));
        if seen.last() != Some(&order()) {
            seen.push(order());
        }
    }
    let first_high = [true, false, false];
    assert!(seen.contains(&first_high), "{seen:?}");
    assert_eq!(seen.last(), Some(&[true, true, true]), "{seen:?}");
}

#[test]
fn one_more_than_may_wait_is_shed_at_once() {
    let proxy = Proxy::with(RULES, &[holding(1, 0)]);
    let waiting: Vec<_> = (0..4).map(|_| of(&proxy, "high")).collect();
    assert!(waiting.iter().all(|one| one.local_reply().is_none()));
    let one_more = of(&proxy, "low");
    assert_eq!(one_more.local_reply().unwrap().status, 429);
    waiting[0].finish().unwrap();
    assert_eq!(of(&proxy, "low").local_reply(), None);
    assert_eq!(held(&proxy), 4);
}

#[test]
fn where_no_more_may_wait_the_least_important_is_shed_for_one_that_is_more_important() {
    let proxy = Proxy::with(RULES, &[holding(1, 0)]);
    let mut waiting: Vec<_> = (0..3).map(|_| of(&proxy, "high")).collect();
    let low = of(&proxy, "low");
    waiting.push(of(&proxy, "high"));
    proxy.run(TICKS);
    assert_eq!(low.local_reply().unwrap().status, 429);
    assert!(waiting.iter().all(|one| one.local_reply().is_none()));
    assert_eq!((held(&proxy), ended(&proxy, "shed")), (4, 1));
}

/// How many of four held requests one tick of the worker lets go to one host that opens, once `before` has
/// happened to the proxy and a request that was sent there.
fn let_go_by_a_tick(before: impl Fn(&Proxy, &HttpStream)) -> usize {
    let proxy = Proxy::with(RULES, &[holding(1, 4096)]);
    let sent = ask(proxy.worker(), "key");
    assert_eq!(sent.first(), A);
    push(&proxy, &holding(2, 0));
    proxy.run(TICKS);
    let waiting: Vec<_> = (0..4).map(|_| ask(proxy.worker(), "key")).collect();
    // The others take the table in.
    push(&proxy, &holding(3, 4096));
    for vm in &proxy.vms {
        if !std::ptr::eq(vm, proxy.worker()) {
            vm.tick().unwrap();
        }
    }
    before(&proxy, &sent);
    proxy.worker().tick().unwrap();
    let gone = waiting
        .iter()
        .filter(|one| one.action() == Action::Continue);
    gone.count()
}

#[test]
fn roots_of_one_vm_make_one_round_a_tick() {
    assert_eq!(let_go_by_a_tick(|_, _| {}), 1);
    let again = |proxy: &Proxy, _: &HttpStream| {
        for _ in 0..2 {
            proxy.worker().configure(RULES).unwrap();
        }
        assert_eq!(proxy.worker().roots().len(), 3);
    };
    assert_eq!(let_go_by_a_tick(again), 1);
}

#[test]
fn a_request_leaves_one_place_when_it_is_over_however_often_it_was_tried() {
    let retried = |sent: &HttpStream| sent.answer(B, &[(":status", "200")]);
    assert_eq!(let_go_by_a_tick(|_, sent| retried(sent)), 1);
    let ended = |_: &Proxy, sent: &HttpStream| {
        retried(sent);
        sent.finish().unwrap();
    };
    assert_eq!(let_go_by_a_tick(ended), 2);
}

#[test]
fn when_the_root_that_looks_at_who_waits_has_gone_another_does() {
    let proxy = Proxy::with(RULES, &[holding(1, 0)]);
    let old = proxy.worker().roots()[0];
    proxy.worker().configure(RULES).unwrap();
    proxy.run(TICKS);
    proxy.worker().retire(old).unwrap();
    let waiting = ask(proxy.worker(), "key");
    push(&proxy, &holding(2, 4096));
    proxy.run(milliseconds(300));
    assert_eq!(waiting.action(), Action::Continue);
}

#[test]
fn a_table_without_holding_lets_all_go_as_it_says() {
    let proxy = Proxy::with(RULES, &[holding(1, 0)]);
    let waiting: Vec<_> = (0..3).map(|_| ask(proxy.worker(), "key")).collect();
    let mut off = holding(2, 0);
    off.policy.as_mut().unwrap().holding = None;
    push(&proxy, &off);
    proxy.run(TICKS);
    let replies = waiting.iter().map(|one| one.local_reply().unwrap().status);
    assert_eq!(replies.collect::<Vec<_>>(), [429; 3]);
}

#[test]
fn a_request_waits_for_a_host_with_its_key_and_takes_another_then() {
    let two = |version, level| {
        let mut two = holding(version, level);
        two.hosts.extend(up(&[B]));
        two.cache_shards = 1;
        let policy = two.policy.as_mut().unwrap();
        policy.holding = Some(v1::Holding {
            for_cached_ms: Some(200),
            ..Default::default()
        });
        two
    };
    let proxy = Proxy::with(RULES, &[two(1, 0)]);
    proxy.ads().accepts(&cached(1, 1, &[("key", A)]));
    proxy.run(TICKS);
    let waiting = ask(proxy.worker(), "key");
    assert_eq!(
        (waiting.action(), waiting.reason()),
        (Action::Pause, "held_for_cached".into())
    );
    assert_eq!(ask(proxy.worker(), "another key").first(), B);
    proxy.run(milliseconds(260));
    assert_eq!(
        (waiting.first(), waiting.reason()),
        (B.into(), "not_cached".into())
    );
    let proxy = Proxy::with(RULES, &[two(1, 0)]);
    proxy.ads().accepts(&cached(1, 1, &[("key", A)]));
    proxy.run(TICKS);
    let waiting = ask(proxy.worker(), "key");
    push(&proxy, &two(2, 4096));
    proxy.run(TICKS);
    assert_eq!(
        (waiting.first(), waiting.reason()),
        (A.into(), "known_cached".into())
    );
}
