// SPDX-License-Identifier: Apache-2.0
#![allow(unsafe_code)] // It plays Envoy, which speaks in pointers.
#![allow(missing_docs)]
//! The dynamic module's hooks in one order each, with what has to come of it.

#[path = "../hooks/envoy.rs"]
mod envoy;
#[path = "../hooks/message.rs"]
mod message;
mod proxy;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use weir_tables::v1;

use envoy::{ANSWERED, LOG, READ, RESUMED, Request};
use proxy::{Live, Proxy, complete, request_body, request_headers, request_trailers};

/// Names the hosts for Envoy.
const DESTINATION: &str = "x-gateway-destination-endpoint";
/// Names the one that reads a prompt.
const PREFILL: &str = "x-prefiller-host-port";

/// A configuration of this cluster, with a word that makes it unlike others.
fn configuration(cluster: &str, word: &str) -> String {
    format!(
        r#"{{"control_cluster": "weir-control", "proxy": "{word}",
            "clusters": {{"rules": {{"table": "{cluster}"}}}}}}"#
    )
}

#[test]
fn streams_of_a_configuration_are_closed_before_envoy_gives_it_up_for_the_next() {
    let proxy = Proxy::new();
    let worker = proxy.worker();
    let first = proxy.install(&configuration("rules", "first"));
    proxy.tick(&first);
    assert_eq!(first.streams().len(), 1);
    let request = worker
        .run(|| Live::begin(&first, &[(":path", "/")]))
        .unwrap();
    worker.run(|| request.headers());
    let second = proxy.install(&configuration("rules", "second"));
    assert_eq!(first.streams().len(), 0, "closed on the main thread");
    worker.run(|| {
        complete(&request.envoy);
        request.destroy();
    });
    first.destroy(&worker);
    proxy.tick(&second);
    assert_eq!(second.streams().len(), 1, "and opened by the next");
}

#[test]
fn a_worker_that_was_not_there_before_goes_by_the_newest_configuration() {
    let proxy = Proxy::new();
    let in_zone = |zone| {
        format!(
            r#"{{"control_cluster": "weir-control", "zone": "{zone}", "clusters": {{"rules": {{}}}}}}"#
        )
    };
    let first = proxy.install(&in_zone("far"));
    let second = proxy.install(&in_zone("near"));
    proxy.tick(&second);
    let worker = proxy.worker();
    for version in 1..=2 {
        proxy.push(
            &second,
            &v1::HostTable {
                zones: vec!["near".into()],
                ..table(version, v1::Host { zone: 1, ..host() })
            },
        );
        worker.run(|| {
            let request = Live::begin(&second, &[(":path", "/")]).unwrap();
            request.headers();
            assert!(request.envoy.sent_to.borrow().is_some());
            complete(&request.envoy);
            request.destroy();
        });
        assert_eq!(proxy.metric("weir_crossings_total"), 0);
        // After a sleep a tick is due.
        proxy.tick(&second);
    }
    drop(first);
}

#[test]
fn one_host_is_told_by_a_call_and_several_by_a_header_whatever_the_caller_named() {
    let proxy = Proxy::new();
    let installed = proxy.install(&configuration("rules", "one"));
    proxy.tick(&installed);
    let other = || v1::Host {
        address: "10.0.0.2:80".into(),
        ..host()
    };
    // Of one that drains Envoy would not take the call; in a panic it is chosen.
    let draining = v1::Host {
        state: v1::HostState::Draining.into(),
        ..host()
    };
    let all = [
        (vec![host()], true, None),
        (vec![host(), other()], false, Some(2)),
        (vec![draining], false, Some(1)),
    ];
    for (version, (hosts, is_told, are_named)) in (1..).zip(all) {
        proxy.push(
            &installed,
            &v1::HostTable {
                hosts,
                ..table(version, host())
            },
        );
        proxy.worker().run(|| {
            // An empty one hides no other.
            let own = [(DESTINATION, ""), (DESTINATION, "10.9.9.9:1")];
            let request = Live::begin(&installed, &own).unwrap();
            request.headers();
            let told = request.envoy.sent_to.borrow().is_some();
            let named = request.header(DESTINATION);
            let named = named.map(|hosts| hosts.matches("10.0.0.").count());
            assert_eq!((told, named), (is_told, are_named));
            complete(&request.envoy);
            request.destroy();
        });
    }
}

#[test]
fn a_request_that_comes_while_a_tick_sheds_another_is_taken() {
    let proxy = Proxy::new();
    let installed = Rc::new(proxy.install(&configuration("rules", "one")));
    proxy.tick(&installed);
    proxy.push(&installed, &holding(1, 0));
    proxy.worker().run(|| {
        let held = Live::begin(&installed, &[(":path", "/")]).unwrap();
        held.headers();
        assert!(held.envoy.is_paused.get());
        // As where an answer of Envoy's own is replaced by asking somebody else.
        let others = Rc::new(RefCell::new(Vec::new()));
        let (by, begun) = (Rc::clone(&installed), Rc::clone(&others));
        let begin = move |_: &Request| begun.borrow_mut().push(Live::begin(&by, &[(":path", "/")]));
        ANSWERED.set(Some(Rc::new(begin)));
        proxy.pass(HELD);
        held.scheduled();
        ANSWERED.set(None);
        assert!(held.envoy.is_answered.get());
        let other = others.take().pop().flatten().expect("it is taken");
        other.headers();
        assert!(other.envoy.is_paused.get(), "by the same table");
        for request in [held, other] {
            complete(&request.envoy);
            request.destroy();
        }
    });
}

#[test]
fn a_worker_whose_last_request_ends_within_a_tick_tells_of_it_and_stays_known() {
    // It is let go on, or shed.
    for level in [4096, 0] {
        let proxy = Proxy::new();
        let installed = proxy.install(&configuration("rules", "one"));
        proxy.tick(&installed);
        proxy.push(&installed, &holding(1, 0));
        let worker = proxy.worker();
        let request = worker.run(|| Live::begin(&installed, &[(":path", "/")]).unwrap());
        worker.run(|| request.headers());
        assert!(request.envoy.is_paused.get());
        proxy.push(&installed, &holding(2, level));
        proxy.pass(HELD);
        worker.run(|| {
            for call_back in [&RESUMED, &ANSWERED] {
                call_back.set(Some(Rc::new(complete)));
            }
            request.scheduled();
        });
        assert!(!request.envoy.is_paused.get());
        // Longer than a record lives.
        for _ in 0..5 {
            proxy.pass(Duration::from_secs(1));
            proxy.tick(&installed);
        }
        let known = proxy.records();
        let known = known.iter().flat_map(|record| &record.clusters);
        let requests = known.map(|cluster| {
            let sent: u64 = cluster.hosts.iter().map(|host| host.assigned).sum();
            (sent, cluster.shed.iter().map(|shed| shed.count).sum())
        });
        let main = (0, 0);
        let worker = if level == 0 { (0, 1) } else { (1, 0) };
        assert_eq!(requests.collect::<Vec<_>>(), [main, worker]);
    }
}

#[test]
fn a_host_that_a_caller_named_is_not_asked_after_a_panic() {
    let proxy = Proxy::new();
    let json = r#"{"control_cluster": "weir-control", "clusters": {"rules": {
        "key": {"prompt": {}}, "prefill": {"table": "readers"}}}}"#;
    let installed = proxy.install(json);
    let own = [(DESTINATION, "10.9.9.9:1"), (PREFILL, "10.9.9.9:2")];
    for hook in [request_headers, request_body, request_trailers] {
        proxy.worker().run(|| {
            let request = Live::begin(&installed, &own).unwrap();
            // Envoy calls no hook from within this: it is for the panic, as a request is at one hook at a time.
            let left = Rc::new(RefCell::new(None));
            let seen = Rc::clone(&left);
            READ.set(Some(Rc::new(move |request| {
                READ.set(None);
                let status = hook(request);
                let left = own.map(|(name, _)| proxy::header(request, name));
                seen.replace(Some((status, left)));
            })));
            request.headers();
            assert_eq!(left.take(), Some((0, [None, None])));
            complete(&request.envoy);
            request.destroy();
        });
    }
    let log = LOG.lock().unwrap();
    let panics = log
        .iter()
        .filter(|line| line.contains("panicked in request_"));
    assert_eq!(panics.count(), 3);
}

/// For as long requests wait by [`holding`].
const HELD: Duration = Duration::from_millis(500);

/// The table of a host that admits this many ranks.
fn holding(version: u64, level: u32) -> v1::HostTable {
    let host = v1::Host {
        admission_level: Some(level),
        ..host()
    };
    let policy = v1::Policy {
        overload: v1::Overload::Dagor.into(),
        selection: v1::Selection::Dynamic.into(),
        holding: Some(v1::Holding {
            for_eligible_ms: Some(HELD.as_millis() as u32),
            ..Default::default()
        }),
        ..Default::default()
    };
    v1::HostTable {
        policy: Some(policy),
        ..table(version, host)
    }
}

fn host() -> v1::Host {
    v1::Host {
        address: "10.0.0.1:80".into(),
        state: v1::HostState::Up.into(),
        ..Default::default()
    }
}

fn table(version: u64, host: v1::Host) -> v1::HostTable {
    v1::HostTable {
        cluster: "rules".into(),
        epoch: 1,
        version,
        policy: Some(v1::Policy {
            overload: v1::Overload::None.into(),
            selection: v1::Selection::Dynamic.into(),
            ..Default::default()
        }),
        hosts: vec![host],
        ..Default::default()
    }
}
