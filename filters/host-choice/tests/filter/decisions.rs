// SPDX-License-Identifier: Apache-2.0
//! What becomes of requests, by table, key, load and age.

use std::time::{Duration, UNIX_EPOCH};

use weir_tables::v1::{self, HostState};
use weir_testkit::{Action, LogLevel, Vm};

use weir_harness::{
    A, B, C, Chosen, Proxy, RULES, SHARING, TICKS, ask, busy, cached, host, is_wasm, milliseconds,
    request, resource, table, up, vm_of,
};

fn decisions(proxy: &Proxy, reason: &str) -> u64 {
    let metrics = proxy.host.metrics();
    metrics.counter(&format!("weir_decisions_total;.;reason=.={reason};.;"))
}

#[test]
fn a_host_that_said_it_has_the_key_comes_first_of_three() {
    let mut cached_table = table(1, vec![busy(A, 0, 0), busy(B, 9, 0), busy(C, 1, 0)]);
    cached_table.cache_shards = 1;
    let proxy = Proxy::with(RULES, &[cached_table]);
    proxy.ads().accepts(&cached(1, 1, &[("key", B)]));
    proxy.run(TICKS);
    let request = ask(proxy.worker(), "key");
    assert_eq!(request.action(), Action::Continue);
    assert_eq!(
        request.destination(),
        [B, A, C],
        "then where least is in progress"
    );
    assert_eq!(request.reason(), "known_cached");
    assert_eq!(decisions(&proxy, "known_cached"), 1);
}

#[test]
fn a_key_is_assumed_cached_where_it_was_sent_also_by_other_vms() {
    let hosts = vec![busy(A, 0, 0), busy(B, 0, 0), busy(C, 0, 0)];
    let proxy = Proxy::with(RULES, &[table(1, hosts)]);
    let first = ask(&proxy.vms[1], "key");
    assert_eq!(first.reason(), "not_cached");
    let second = ask(&proxy.vms[1], "key");
    assert_eq!(second.reason(), "assumed_cached");
    assert_eq!(second.first(), first.first());
    proxy.run(SHARING);
    let elsewhere = ask(&proxy.vms[2], "key");
    assert_eq!(elsewhere.reason(), "assumed_cached");
    assert_eq!(elsewhere.first(), first.first());
}

#[test]
fn what_one_vm_has_in_flight_counts_for_the_others() {
    let hosts = vec![busy(A, 0, 0), busy(B, 0, 0)];
    let proxy = Proxy::with(RULES, &[table(1, hosts)]);
    let open: Vec<_> = (0..10).map(|_| request(&proxy.vms[1], &[])).collect();
    let at_a = open.iter().filter(|request| request.first() == A).count();
    assert_eq!(at_a, 5, "spread evenly");
    for request in open.iter().filter(|request| request.first() == A) {
        request.answered_by(A);
    }
    proxy.run(SHARING);
    assert_eq!(request(&proxy.vms[2], &[]).first(), A);
}

#[test]
fn what_a_dead_vm_had_in_flight_is_forgotten() {
    let mut proxy = Proxy::with(RULES, &[table(1, vec![busy(A, 0, 0), busy(B, 0, 0)])]);
    let dying = proxy.vms.remove(1);
    let open: Vec<_> = (0..10).map(|_| request(&dying, &[])).collect();
    for request in open.iter().filter(|request| request.first() == B) {
        request.answered_by(B);
    }
    proxy.run(SHARING);
    assert_eq!(request(proxy.worker(), &[]).first(), B);
    drop((open, dying));
    proxy.run(milliseconds(3_500));
    let newer = table(2, vec![busy(A, 0, 0), busy(B, 2, 0)]);
    proxy.ads().accepts(&[resource(&newer)]);
    proxy.run(TICKS);
    assert_eq!(request(proxy.worker(), &[]).first(), A);
}

#[test]
fn a_request_without_a_key_goes_where_least_is_in_progress() {
    let proxy = Proxy::with(RULES, &[table(1, vec![busy(A, 5, 0), busy(B, 1, 0)])]);
    for headers in [&[][..], &[("x-weir-key", "")]] {
        let request = request(proxy.worker(), headers);
        assert_eq!(
            (request.first().as_str(), request.reason().as_str()),
            (B, "no_key")
        );
        request.answered_by(B);
    }
}

#[test]
fn any_bytes_are_a_key() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A, B]))]);
    let long = vec![b'x'; 65_536];
    for key in [&b"\xff\xfe\x00"[..], long.as_slice(), b" "] {
        let headers = || weir_testkit::Headers::from([(":path", "/")]).with("x-weir-key", key);
        let first = proxy.worker().request(headers()).unwrap();
        assert_eq!(first.reason(), "not_cached");
        let second = proxy.worker().request(headers()).unwrap();
        assert_eq!(second.reason(), "assumed_cached");
        assert_eq!(second.first(), first.first());
    }
}

#[test]
fn a_key_is_read_from_the_path() {
    let configuration = r#"{"clusters":{"rules":{"key":{"path":"/v1/projects/{key}/run"}}}}"#;
    let proxy = Proxy::with(configuration, &[table(1, up(&[A, B, C]))]);
    let reasons = [
        "/v1/projects/7/run?a",
        "/v1/projects/7/run",
        "/v1/projects",
        "/",
    ]
    .map(|path| proxy.worker().request([(":path", path)]).unwrap().reason());
    assert_eq!(
        reasons,
        ["not_cached", "assumed_cached", "no_key", "no_key"]
    );
}

/// Keys in prefix order, as a language model's caller would send them.
const LISTS: &str = r#"{"clusters":{"rules":{"key_separator":";"}}}"#;

#[test]
fn of_several_keys_the_host_with_the_longest_beginning_comes_first() {
    let hosts = || {
        let mut hosts = table(1, vec![busy(A, 0, 0), busy(B, 9, 0), busy(C, 20, 0)]);
        hosts.cache_shards = 4;
        hosts
    };
    let holders = [("a", B), ("a", C), ("b", C), ("c", A), ("a;b;c", A)];
    let ask_of = |configuration: &str, keys: &str| {
        let proxy = Proxy::with(configuration, &[hosts()]);
        proxy.ads().accepts(&cached(1, 4, &holders));
        proxy.run(TICKS);
        let request = ask(proxy.worker(), keys);
        (request.destination(), request.reason())
    };
    let known = "known_cached".to_owned();
    for keys in ["a;b;c", " a ; b ;c;", ";;a;b;;c"] {
        let (hosts, reason) = ask_of(LISTS, keys);
        assert_eq!(
            hosts,
            [C, A, B],
            "{keys}: the gap before c makes it useless"
        );
        assert_eq!(reason, known);
    }
    assert_eq!(ask_of(LISTS, "b;a").0[0], C);
    assert_eq!(ask_of(LISTS, ";; ;").1, "no_key");
    let (hosts, _) = ask_of(RULES, "a;b;c");
    assert_eq!(hosts[0], A, "without a separator it is one key");
}

#[test]
fn all_keys_of_a_request_are_assumed_where_it_was_sent_and_those_too_many_are_not_read() {
    let hosts = vec![busy(A, 0, 0), busy(B, 0, 0), busy(C, 0, 0)];
    let proxy = Proxy::with(LISTS, &[table(1, hosts)]);
    let names = |numbers: std::ops::Range<u32>| {
        let names: Vec<_> = numbers.map(|number| format!("k{number}")).collect();
        names.join(";")
    };
    let first = ask(&proxy.vms[1], &names(0..100));
    assert_eq!(first.reason(), "not_cached");
    for keys in ["k0", "k63", &names(0..100), &names(10..20)] {
        let again = ask(&proxy.vms[1], keys);
        assert_eq!(again.reason(), "assumed_cached", "{keys}");
        assert_eq!(again.first(), first.first());
    }
    assert_eq!(ask(&proxy.vms[1], "k64").reason(), "not_cached");
    proxy.run(SHARING);
    let elsewhere = ask(&proxy.vms[2], &names(0..3));
    assert_eq!(elsewhere.reason(), "assumed_cached");
    assert_eq!(elsewhere.first(), first.first());
}

#[test]
fn each_envoy_cluster_has_its_own_table_and_the_star_has_the_rest() {
    let configuration = r#"{"clusters":{"rules":{}, "outbound|80||other":{"table":"others"}, "*":{"table":"rest"}}}"#;
    let named = |cluster: &str, address: &str| v1::HostTable {
        cluster: cluster.into(),
        ..table(1, up(&[address]))
    };
    let tables = [named("rules", A), named("others", B), named("rest", C)];
    let proxy = Proxy::with(configuration, &tables);
    for (cluster, expected) in [("rules", A), ("outbound|80||other", B), ("any", C)] {
        let vm = vm_of(&proxy.host, configuration, cluster, "127.0.0.1:1")
            .start()
            .unwrap();
        assert_eq!(ask(&vm, "key").first(), expected);
    }
}

fn breaker(hosts: Vec<v1::Host>, version: u64) -> v1::HostTable {
    let mut breaker = table(version, hosts);
    let policy = breaker.policy.as_mut().unwrap();
    policy.overload = v1::Overload::Breaker.into();
    policy.breaker_queued_jobs = Some(10);
    policy.stale_after_ms = Some(5_000);
    policy.retry_after_ms = Some(4_000);
    breaker
}

fn assert_shed(vm: &Vm) {
    let request = ask(vm, "key");
    assert_eq!(request.action(), Action::Pause);
    let reply = request.local_reply().expect("answered by the filter");
    // As a dynamic module Envoy takes none with its own answer: the next test has what calls by gRPC see.
    let grpc_status = if is_wasm() { 8 } else { 0 };
    assert_eq!((reply.status, reply.grpc_status), (429, Some(grpc_status)));
    assert_eq!(reply.details, "weir_overloaded");
    let after: u64 = reply.headers.get("retry-after").unwrap().parse().unwrap();
    assert!(
        (2..=6).contains(&after),
        "half to one and a half of 4 s: {after}"
    );
    assert_eq!(request.reason(), "overloaded");
    request.finish().unwrap();
}

#[test]
fn a_call_by_grpc_that_no_host_admits_ends_with_resource_exhausted() {
    let proxy = Proxy::with(RULES, &[breaker(vec![busy(A, 30, 20)], 1)]);
    for (content_type, expected) in [
        ("application/grpc", ("200", Some("8"))),
        ("application/grpc+proto", ("200", Some("8"))),
        ("application/json", ("429", None)),
    ] {
        let call = request(proxy.worker(), &[("content-type", content_type)]);
        let status = call.response_header(":status").unwrap();
        let grpc_status = call.response_header("grpc-status");
        assert_eq!(
            (&*status, grpc_status.as_deref()),
            expected,
            "{content_type}"
        );
        assert!(call.response_header("retry-after").is_some());
        assert_eq!(call.reason(), "overloaded");
        call.finish().unwrap();
    }
}

#[test]
fn a_request_that_no_host_admits_is_answered_429_with_the_time_to_wait() {
    let proxy = Proxy::with(RULES, &[breaker(vec![busy(A, 30, 20), busy(B, 30, 20)], 1)]);
    assert_shed(proxy.worker());
    assert_eq!(decisions(&proxy, "overloaded"), 1);
    proxy
        .ads()
        .accepts(&[resource(&breaker(vec![busy(A, 30, 20), busy(B, 9, 2)], 2))]);
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key").destination(), [B]);
}

#[test]
fn under_dagor_a_host_gets_the_ranks_below_its_level() {
    let level = |address: &str, level: u32| v1::Host {
        admission_level: Some(level),
        ..host(address, HostState::Up)
    };
    // Class 0 at A; nothing but class 0 and 1 at B.
    let mut dagor = table(1, vec![level(A, 128), level(B, 256)]);
    dagor.policy.as_mut().unwrap().overload = v1::Overload::Dagor.into();
    let configuration = r#"{"clusters":{"rules":{}},"priorities":{"high":0,"mid":1,"low":16}}"#;
    let proxy = Proxy::with(configuration, &[dagor]);
    let at = |priority: &str| request(proxy.worker(), &[("x-weir-priority", priority)]);
    assert_eq!(at("high").destination().len(), 2);
    assert_eq!(at("mid").destination(), [B]);
    for priority in ["low", "unknown", ""] {
        assert_eq!(at(priority).reason(), "overloaded", "{priority}");
    }
}

#[test]
fn a_table_without_a_host_that_answers_leaves_the_choice_to_envoy() {
    let down = vec![host(A, HostState::Down), host(B, HostState::Down)];
    for hosts in [down, vec![]] {
        let proxy = Proxy::with(RULES, &[table(1, hosts)]);
        let named_by_the_caller = ("x-gateway-destination-endpoint", B);
        let request = request(proxy.worker(), &[named_by_the_caller]);
        assert!(request.local_reply().is_none(), "answered by the filter");
        assert!(request.destination().is_empty());
        assert_eq!(request.reason(), "no_host");
        request.finish().unwrap();
    }
}

#[test]
fn hosts_that_drain_are_chosen_where_few_others_are_left_and_the_log_says_so_once() {
    let draining = |addresses: &[&str]| {
        let host = |address| match addresses.contains(&address) {
            true => host(address, HostState::Draining),
            false => host(address, HostState::Up),
        };
        [A, B, C].map(host).to_vec()
    };
    let words = "few hosts are left";
    let proxy = Proxy::with(RULES, &[table(1, draining(&[A]))]);
    let said = || {
        let logs = proxy.worker().logs_at(LogLevel::Warn);
        logs.iter().filter(|line| line.contains(words)).count()
    };
    assert_eq!(
        (ask(proxy.worker(), "key").destination().len(), said()),
        (2, 0)
    );
    for (version, drain) in [(2, &[A, B, C][..]), (3, &[A, B]), (4, &[A, B, C])] {
        proxy
            .ads()
            .accepts(&[resource(&table(version, draining(drain)))]);
        proxy.run(TICKS);
        let request = ask(proxy.worker(), "key");
        assert_eq!(request.destination().len(), 3, "{drain:?}");
        assert_eq!(request.reason(), "panic");
        assert_eq!(said(), 1);
        request.finish().unwrap();
    }
    let mut strict = table(5, draining(&[A, B]));
    strict.policy.as_mut().unwrap().panic_percent = Some(30);
    proxy.ads().accepts(&[resource(&strict)]);
    proxy.run(TICKS);
    assert_eq!(ask(proxy.worker(), "key").destination(), [C]);
}

#[test]
fn by_a_stale_table_nothing_is_refused_and_no_load_counts() {
    let hosts = vec![busy(A, 99, 99), busy(B, 30, 20)];
    let proxy = Proxy::with(RULES, &[breaker(hosts, 1)]);
    assert_shed(proxy.worker());
    assert_eq!(proxy.host.metrics().gauge("weir_stale_tables"), 0);
    proxy.run(milliseconds(5_200));
    assert_eq!(proxy.host.metrics().gauge("weir_stale_tables"), 1);
    let firsts: Vec<_> = (0..20)
        .map(|_| {
            let request = request(proxy.worker(), &[]);
            let first = request.first();
            request.answered_by(&first);
            first
        })
        .collect();
    assert!(firsts.iter().any(|first| first == A), "the busier one too");
    assert!(firsts.iter().any(|first| first == B));
}

#[test]
fn a_stale_table_without_a_host_that_is_up_leaves_the_choice_to_envoy() {
    let proxy = Proxy::with(RULES, &[table(1, vec![host(A, HostState::Down)])]);
    proxy.run(milliseconds(5_200));
    let request = ask(proxy.worker(), "key");
    assert_eq!(request.action(), Action::Continue);
    assert_eq!(
        (request.destination(), request.reason()),
        (vec![], "stale_table".into())
    );
}

#[test]
fn jumps_of_the_wall_clock_change_nothing() {
    let proxy = Proxy::with(RULES, &[breaker(vec![busy(A, 30, 20)], 1)]);
    let clock = proxy.host.clock();
    for seconds in [0, 4_000_000_000, 1] {
        clock.set_wall(UNIX_EPOCH + Duration::from_secs(seconds));
        proxy.run(TICKS);
        assert_shed(proxy.worker());
        proxy.ads();
    }
}

#[test]
fn after_a_jump_of_the_monotonic_clock_requests_go_on() {
    let proxy = Proxy::with(RULES, &[breaker(vec![busy(A, 30, 20)], 1)]);
    let open = ask(&proxy.vms[1], "key");
    proxy
        .host
        .clock()
        .advance(Duration::from_secs(86_400 * 365));
    assert_eq!(ask(proxy.worker(), "key").first(), A, "the table is stale");
    proxy.run(SHARING);
    proxy
        .ads()
        .accepts(&[resource(&breaker(vec![busy(A, 30, 20)], 2))]);
    proxy.run(SHARING);
    assert_shed(proxy.worker());
    open.finish().unwrap();
    proxy.ads();
}
