// SPDX-License-Identifier: Apache-2.0
//! Which headers are believed, overwritten, removed and added.

use weir_testkit::{HttpStream, Vm};

use weir_harness::{A, B, Chosen, Proxy, RULES, SHARING, TICKS, busy, request, table, up, vm_of};

const DESTINATION: &str = "x-gateway-destination-endpoint";

#[test]
fn a_destination_that_the_caller_sent_is_overwritten() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let sent = request(
        proxy.worker(),
        &[(DESTINATION, "6.6.6.6:6"), (DESTINATION, "7.7.7.7:7")],
    );
    assert_eq!(sent.destination(), [A]);
}

#[test]
fn a_destination_that_the_caller_sent_is_removed_where_envoy_chooses() {
    let without_table = Proxy::start(RULES);
    let request_to = |vm: &Vm| request(vm, &[(DESTINATION, "6.6.6.6:6")]).destination();
    assert!(request_to(without_table.worker()).is_empty(), "no table");

    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let unmanaged = vm_of(&proxy.host, RULES, "unmanaged", "127.0.0.1:1")
        .start()
        .unwrap();
    assert!(request_to(&unmanaged).is_empty(), "unmanaged cluster");

    let no_route = proxy
        .host
        .vm(weir_harness::module())
        .vm_id("other")
        .plugin_config(RULES);
    assert!(
        request_to(&no_route.start().unwrap()).is_empty(),
        "no route"
    );
}

/// A request with all of the caller's headers from `caller` under `trust`, `mtls` or not.
fn asked_from(proxy: &Proxy, trust: &str, caller: &str, mtls: bool) -> HttpStream {
    let configuration = format!(r#"{{"clusters":{{"rules":{{}}}},"trust":"{trust}"}}"#);
    let vm = vm_of(&proxy.host, &configuration, "rules", caller)
        .property(&["connection", "mtls"], [u8::from(mtls)])
        .start()
        .unwrap();
    let headers = [
        ("x-weir-key", "k"),
        ("x-weir-priority", "high"),
        ("x-weir-user", "u"),
    ];
    request(&vm, &headers)
}

#[test]
fn headers_of_callers_who_are_not_trusted_are_removed_and_not_believed() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A, B]))]);
    let cases = [
        ("any", "203.0.113.9:1", false, true),
        ("none", "127.0.0.1:1", true, false),
        ("loopback", "127.0.0.1:1", false, true),
        ("loopback", "127.8.8.8:1", false, true),
        ("loopback", "[::1]:1", false, true),
        ("loopback", "[::ffff:127.0.0.1]:1", false, true),
        // Written by the caller into x-forwarded-for.
        ("loopback", "127.0.0.1:0", false, false),
        ("loopback", "[::1]:0", false, false),
        ("loopback", "127.0.0.1", false, false),
        ("loopback", "203.0.113.9:1", true, false),
        ("loopback", "[2001:db8::1]:1", false, false),
        ("loopback", "127.0.0.1.example:1", false, false),
        ("loopback", "", false, false),
        ("loopback", "@/run/app.sock", false, false),
        ("mtls", "203.0.113.9:1", true, true),
        ("mtls", "127.0.0.1:1", false, false),
    ];
    for (trust, caller, mtls, trusted) in cases {
        let request = asked_from(&proxy, trust, caller, mtls);
        let reason = if trusted { "not_cached" } else { "no_key" };
        assert_eq!(request.reason(), reason, "{trust} {caller}");
        for name in ["x-weir-key", "x-weir-priority", "x-weir-user"] {
            let left = request.request_header(name).is_some();
            assert_eq!(left, trusted, "{trust} {caller}: {name}");
        }
        // Not assumed cached for the next case.
        proxy.run(std::time::Duration::from_secs(11));
    }
}

#[test]
fn where_key_and_user_come_from_elsewhere_the_default_headers_go_all_the_same() {
    let configuration = r#"{"trust":"none","clusters":{"rules":{
        "key":{"path":"/{key}"},"user":"peer_certificate","priority_header":"x-weir-class"}}}"#;
    let proxy = Proxy::with(configuration, &[table(1, up(&[A, B]))]);
    let names = [
        "x-weir-key",
        "x-weir-priority",
        "x-weir-user",
        "x-weir-class",
    ];
    let sent = names.map(|name| (name, "high"));
    let all: Vec<_> = [(":path", "/7")].into_iter().chain(sent).collect();
    let request = proxy.worker().request(all).unwrap();
    assert_eq!(
        request.reason(),
        "not_cached",
        "the path is the request's own"
    );
    for name in names {
        assert_eq!(request.request_header(name), None);
    }
}

#[test]
fn an_applications_own_header_is_not_believed_of_just_anybody_and_stays() {
    let configuration = r#"{"trust":"none","clusters":{"rules":{"key":{"header":"x-project"}}}}"#;
    let proxy = Proxy::with(configuration, &[table(1, up(&[A, B]))]);
    let request = request(proxy.worker(), &[("x-project", "7")]);
    assert_eq!(request.reason(), "no_key");
    assert_eq!(request.request_header("x-project").as_deref(), Some("7"));
}

#[test]
fn priority_and_user_make_the_rank() {
    let configuration = r#"{"clusters":{"rules":{}},
        "priorities":{"high":3,"low":20},"default_priority":"low"}"#;
    let proxy = Proxy::with(configuration, &[table(1, up(&[A]))]);
    for priority in ["high", " high", "low", "HIGH", "none", "\u{fc}"] {
        request(
            proxy.worker(),
            &[("x-weir-priority", priority), ("x-weir-user", "u")],
        );
    }
    proxy.run(SHARING);
    let records = proxy.records();
    let offered = &records
        .iter()
        .find(|record| !record.clusters[0].offered.is_empty())
        .unwrap()
        .clusters[0]
        .offered;
    let hour = 1_704_067_200 / 3_600;
    let user = u32::from(weir_policy::user_priority(b"u", hour));
    let counted: Vec<_> = offered
        .iter()
        .map(|offered| (offered.rank, offered.count))
        .collect();
    assert_eq!(counted, [(3 * 128 + user, 2), (20 * 128 + user, 4)]);
}

#[test]
fn no_name_of_a_priority_counts_as_more_important_than_the_cap() {
    let configuration = r#"{"clusters":{"rules":{}},"max_priority":8,
        "priorities":{"top":0,"high":8,"low":20},"default_priority":"top"}"#;
    let proxy = Proxy::with(configuration, &[table(1, up(&[A]))]);
    for priority in ["top", "high", "low", "none"] {
        request(proxy.worker(), &[("x-weir-priority", priority)]);
    }
    proxy.run(SHARING);
    let records = proxy.records();
    let offered = records
        .iter()
        .flat_map(|record| &record.clusters[0].offered);
    let mut classes: Vec<u32> = offered
        .flat_map(|offered| vec![offered.rank / 128; offered.count as usize])
        .collect();
    classes.sort_unstable();
    assert_eq!(classes, [8, 8, 8, 20]);
}

#[test]
fn the_certificate_may_name_the_user() {
    let configuration = r#"{"clusters":{"rules":{"user":"peer_certificate"}}}"#;
    let proxy = Proxy::with(configuration, &[table(1, up(&[A]))]);
    let vm = vm_of(&proxy.host, configuration, "rules", "127.0.0.1:1")
        .property(&["connection", "uri_san_peer_certificate"], "spiffe://a")
        .start()
        .unwrap();
    for _ in 0..5 {
        request(&vm, &[("x-weir-user", "someone else")]);
    }
    proxy.run(SHARING);
    let user = u32::from(weir_policy::user_priority(
        b"spiffe://a",
        1_704_067_200 / 3_600,
    ));
    let offered: Vec<_> = proxy
        .records()
        .iter()
        .flat_map(|record| record.clusters[0].offered.clone())
        .collect();
    assert_eq!(offered.len(), 1);
    assert_eq!((offered[0].rank, offered[0].count), (16 * 128 + user, 5));
}

#[test]
fn requests_without_a_user_take_their_chance() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    for _ in 0..50 {
        request(proxy.worker(), &[]);
    }
    proxy.run(SHARING);
    let ranks: Vec<_> = proxy
        .records()
        .iter()
        .flat_map(|record| record.clusters[0].offered.clone())
        .collect();
    assert!(ranks.len() > 10, "{ranks:?}");
    assert!(ranks.iter().all(|offered| offered.rank / 128 == 16));
}

#[test]
fn answers_say_host_and_reason_where_that_is_switched_on() {
    let debug = r#"{"clusters":{"rules":{}},"debug":true}"#;
    let mut shedding = table(1, vec![busy(A, 300, 300)]);
    shedding.policy.as_mut().unwrap().overload = weir_tables::v1::Overload::Breaker.into();
    for (configuration, shown) in [(debug, true), (RULES, false)] {
        let reasons = |proxy: &Proxy| {
            let request = request(proxy.worker(), &[]);
            if request.local_reply().is_none() {
                request.answer(A, &[(":status", "200"), ("x-weir-reason", "the host's")]);
            }
            request.finish().unwrap();
            let header = |name: &str| request.response_header(name);
            (header("x-weir-reason"), header("x-weir-host"))
        };
        let sent = reasons(&Proxy::with(configuration, &[table(1, up(&[A]))]));
        let fallback = reasons(&Proxy::start(configuration));
        let shed = reasons(&Proxy::with(configuration, &[shedding.clone()]));
        let nobody = reasons(&Proxy::with(configuration, &[table(1, vec![])]));
        let text = |text: &str| Some(text.to_owned());
        if shown {
            assert_eq!(sent, (text("no_key"), text(A)));
            assert_eq!(fallback, (text("no_table"), text(A)));
            assert_eq!(shed, (text("overloaded"), None));
            assert_eq!(nobody, (text("no_host"), text(A)));
        } else {
            assert_eq!(sent, (text("the host's"), None));
            assert_eq!((shed, nobody), ((None, None), sent));
        }
    }
}

#[test]
fn the_reason_is_in_the_filter_state_for_access_logs() {
    let proxy = Proxy::with(RULES, &[table(1, up(&[A]))]);
    let request = request(proxy.worker(), &[]);
    assert_eq!(request.filter_state(&["weir_reason"]).unwrap(), b"no_key");
    proxy.run(TICKS);
}
