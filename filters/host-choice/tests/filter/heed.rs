// SPDX-License-Identifier: Apache-2.0
//! An Envoy that does not send requests where the filter says, and one that tries the named host first.

use weir_tables::v1;
use weir_testkit::{HttpStream, LogLevel};

use weir_harness::{
    A, B, C, Chosen, Proxy, RULES, SHARING, ask, busy, is_wasm, milliseconds, request, resource,
    table, up,
};

/// Which try of Envoy's was answered.
fn at_attempt(request: &HttpStream, attempt: u64) {
    request.set_property(
        &["upstream", "request_attempt_count"],
        attempt.to_le_bytes(),
    );
}

fn unconnected(proxy: &Proxy) -> u64 {
    let records = proxy.records();
    let clusters = records.iter().flat_map(|record| &record.clusters);
    let hosts = clusters.flat_map(|cluster| &cluster.hosts);
    hosts.map(|host| host.unconnected).sum()
}

fn says_ignored(proxy: &Proxy) -> bool {
    proxy.run(SHARING);
    let records = proxy.records();
    let mut clusters = records.iter().flat_map(|record| &record.clusters);
    clusters.any(|cluster| cluster.choices_ignored)
}

fn ignored(proxy: &Proxy) -> u64 {
    proxy.host.metrics().counter("weir_choices_ignored_total")
}

fn warnings(proxy: &Proxy) -> usize {
    let logs = proxy.worker().logs_at(LogLevel::Warn);
    let lines = logs.iter();
    lines
        .filter(|line| line.contains("Envoy does not send"))
        .count()
}

/// Each request is answered by the next host in turn, whoever was named.
fn in_turn(proxy: &Proxy, requests: usize) {
    for number in 0..requests {
        let request = ask(proxy.worker(), &format!("key-{number}"));
        at_attempt(&request, 1);
        request.answered_by([A, B, C][number % 3]);
    }
}

#[test]
fn the_named_host_that_was_not_tried_has_refused_nothing() {
    let proxy = Proxy::with(RULES, &[table(1, vec![busy(A, 0, 0), busy(B, 50, 0)])]);
    let missed = request(proxy.worker(), &[]);
    assert_eq!(missed.destination(), [A, B]);
    at_attempt(&missed, 1);
    missed.answered_by(B);
    assert_eq!(request(proxy.worker(), &[]).first(), A, "not suspect");
    let retried = request(proxy.worker(), &[]);
    at_attempt(&retried, 2);
    retried.answered_by(B);
    assert_eq!(request(proxy.worker(), &[]).first(), B, "A is suspect");
    proxy.run(SHARING);
    assert_eq!(unconnected(&proxy), 1);
}

#[test]
fn while_envoy_goes_its_own_way_nothing_is_shed_and_everybody_is_told() {
    let dagor = |version, level| {
        let host = |address: &&str| v1::Host {
            admission_level: Some(level),
            ..busy(address, 0, 0)
        };
        let mut table = table(version, [A, B, C].iter().map(host).collect());
        table.policy.as_mut().unwrap().overload = v1::Overload::Dagor.into();
        table
    };
    let proxy = Proxy::with(RULES, &[dagor(1, 4096)]);
    in_turn(&proxy, 100);
    assert!(ignored(&proxy) >= 16 && warnings(&proxy) == 1 && says_ignored(&proxy));
    assert_eq!(unconnected(&proxy), 0);
    // Levels are of hosts that are not chosen here.
    proxy.ads().accepts(&[resource(&dagor(2, 0))]);
    proxy.run(SHARING);
    let open = ask(proxy.worker(), "key");
    assert!(open.local_reply().is_none(), "shed");
    open.answered_by(&open.first());
    // Somebody sees to it: every choice is heeded. The module of WebAssembly knows at its next tick, the other shell
    // already when its last request has ended.
    for number in 0..100 {
        let request = ask(proxy.worker(), &format!("key-{number}"));
        if !is_wasm() && request.local_reply().is_some() {
            break;
        }
        at_attempt(&request, 1);
        request.answered_by(&request.first());
    }
    assert!(!says_ignored(&proxy));
    let shed = ask(proxy.worker(), "key");
    assert_eq!(shed.local_reply().map(|reply| reply.status), Some(429));
    shed.finish().unwrap();
    assert_eq!(warnings(&proxy), 1);
}

#[test]
fn an_envoy_that_knows_none_of_the_hosts_ignores_choices_too() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A, B]))]);
    for number in 0..20 {
        let request = ask(proxy.worker(), &format!("key-{number}"));
        at_attempt(&request, 1);
        request.answered_by("10.9.9.9:80");
    }
    assert_eq!((ignored(&proxy), warnings(&proxy)), (20, 1));
    assert!(says_ignored(&proxy));
    assert_eq!(unconnected(&proxy), 0);
}

#[test]
fn a_host_that_envoy_does_not_have_yet_is_no_sign_of_it() {
    let proxy = Proxy::with(RULES, &[table(1, vec![busy(A, 0, 0), busy(B, 50, 0)])]);
    for _ in 0..100 {
        let request = request(proxy.worker(), &[]);
        at_attempt(&request, 1);
        request.answered_by(B);
        proxy.run(milliseconds(10));
    }
    assert!(ignored(&proxy) == 0 && !says_ignored(&proxy) && warnings(&proxy) == 0);
    assert_eq!(unconnected(&proxy), 0);
}
