// SPDX-License-Identifier: Apache-2.0
//! Requests that Envoy may try at a second host.

use weir_tables::v1;
use weir_testkit::HttpStream;

use weir_harness::{A, B, Chosen, Proxy, RULES, busy, milliseconds, request, table};

const HEDGE: &str = "x-envoy-hedge-on-per-try-timeout";
const HEADERS: [&str; 4] = [
    HEDGE,
    "x-envoy-upstream-rq-per-try-timeout-ms",
    "x-envoy-retry-on",
    "x-envoy-max-retries",
];

/// Two hosts of four cores; B has so many jobs, A none, so that A comes first.
fn hedging(jobs: u32) -> v1::HostTable {
    let mut hedging = table(1, vec![busy(A, 0, 0), busy(B, jobs, 0)]);
    for host in &mut hedging.hosts {
        host.capacity_millicores = 4_000;
    }
    hedging.policy.as_mut().unwrap().hedging = Some(v1::Hedging {
        after_ms: Some(30),
        classes: Some(1),
        ..Default::default()
    });
    hedging
}

fn ask(proxy: &Proxy, method: &str, headers: &[(&str, &str)]) -> HttpStream {
    let own = [
        (":path", "/"),
        (":method", method),
        (":authority", "rules"),
        ("x-weir-priority", "high"),
    ];
    let all: Vec<_> = own.iter().chain(headers).copied().collect();
    proxy.worker().request(all.as_slice()).unwrap()
}

fn told(request: &HttpStream) -> Vec<String> {
    let value = |name: &&str| request.request_header(name);
    HEADERS.iter().filter_map(value).collect()
}

const HEDGED: [&str; 4] = [
    "true",
    "30",
    "connect-failure,refused-stream,reset-before-request",
    "1",
];

#[test]
fn envoy_is_told_to_try_the_second_host_where_it_has_cores_to_spare() {
    let proxy = Proxy::with(RULES, &[hedging(1)]);
    let hedged = ask(&proxy, "GET", &[]);
    assert_eq!(
        (hedged.destination(), told(&hedged)),
        (vec![A.into(), B.into()], HEDGED.map(str::to_owned).to_vec())
    );
    let busy = Proxy::with(RULES, &[hedging(4)]);
    assert_eq!(told(&ask(&busy, "GET", &[])), [""; 0]);
    let mut off = hedging(1);
    off.policy.as_mut().unwrap().hedging = None;
    assert_eq!(told(&ask(&Proxy::with(RULES, &[off]), "GET", &[])), [""; 0]);
}

#[test]
fn a_core_is_promised_to_one_second_try_at_a_time() {
    let endings: [fn(&HttpStream); 3] = [
        |hedged| hedged.answer(A, &[(":status", "200")]),
        |hedged| hedged.answer(B, &[(":status", "500")]),
        |hedged| hedged.finish().unwrap(),
    ];
    for (end, again) in endings.into_iter().zip([true, false, true]) {
        // B has one core to spare.
        let proxy = Proxy::with(RULES, &[hedging(3)]);
        let hedged = ask(&proxy, "GET", &[]);
        assert_eq!((hedged.first(), told(&hedged).len()), (A.into(), 4));
        let other = ask(&proxy, "GET", &[]);
        assert_eq!((other.first(), told(&other).len()), (A.into(), 0));
        end(&hedged);
        let next = ask(&proxy, "GET", &[]);
        // Where B answered it has the request, and so no core.
        assert_eq!(told(&next).len() == 4, again);
    }
}

#[test]
fn only_idempotent_requests_of_the_classes_that_are_wanted_are_hedged() {
    let proxy = Proxy::with(RULES, &[hedging(1)]);
    assert_eq!(told(&ask(&proxy, "PUT", &[])), HEDGED);
    assert_eq!(told(&ask(&proxy, "POST", &[])), [""; 0]);
    assert_eq!(told(&request(proxy.worker(), &[])), [""; 0], "low");
}

#[test]
fn what_a_trusted_caller_tells_envoy_stays_and_what_another_tells_goes() {
    let own = [(HEDGE, "false"), ("x-envoy-max-retries", "5")];
    let proxy = Proxy::with(RULES, &[hedging(1)]);
    assert_eq!(told(&ask(&proxy, "GET", &own)), ["false", "5"]);
    let strict = r#"{"clusters":{"rules":{}},"trust":"none","priorities":{"low":0}}"#;
    let proxy = Proxy::with(strict, &[hedging(1)]);
    assert_eq!(told(&ask(&proxy, "POST", &own)), [""; 0]);
    assert_eq!(told(&ask(&proxy, "GET", &own)), HEDGED);
}

#[test]
fn a_host_that_was_only_slow_has_not_failed() {
    let first_after = |wait: u64| {
        let proxy = Proxy::with(RULES, &[hedging(1)]);
        let slow = ask(&proxy, "GET", &[]);
        assert_eq!(slow.first(), A);
        proxy.run(milliseconds(wait));
        slow.answered_by(B);
        ask(&proxy, "GET", &[]).first()
    };
    assert_eq!(first_after(40), A, "the second was asked as well");
    assert_eq!(
        first_after(28),
        A,
        "by a timer that was started a little before"
    );
    assert_eq!(first_after(10), B, "too early for that: the first failed");
}
