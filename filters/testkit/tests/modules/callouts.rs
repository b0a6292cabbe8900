// SPDX-License-Identifier: Apache-2.0

use std::time::Duration;

use weir_testkit::{Action, Error, Host, Vm};

use crate::fixture::{CALLOUTS, said};

/// A VM whose upstreams all exist.
fn connected() -> Vm {
    let host = Host::new();
    host.add_upstream("feed");
    host.add_upstream("auth");
    host.vm(&CALLOUTS).plugin_config("feed").start().unwrap()
}

#[test]
fn the_test_plays_the_server_of_a_grpc_stream() {
    let vm = connected();
    vm.tick().unwrap();
    vm.tick().unwrap();
    let streams = vm.grpc_streams();
    let [stream] = streams.as_slice() else {
        panic!("one stream, not {}", streams.len())
    };
    let request = stream.request();
    assert_eq!(
        (request.cluster.as_str(), request.service.as_str()),
        ("feed", "a.v1.Feed")
    );
    assert_eq!(
        (
            request.method.as_str(),
            request.initial_metadata.get("id").as_deref()
        ),
        ("Watch", Some("me"))
    );
    assert_eq!(stream.take_sent(), [b"hello"]);

    stream.initial_metadata([("server", "s1")]).unwrap();
    stream.send("one").unwrap();
    stream.send("two").unwrap();
    assert_eq!(stream.take_sent(), [b"echo one", b"echo two"]);
    assert!(stream.take_sent().is_empty());

    stream.trailing_metadata([("a", "1"), ("b", "2")]).unwrap();
    stream.close(14, "gone").unwrap();
    assert!(!stream.is_open());
    assert!(vm.grpc_streams().is_empty());
    assert_eq!(
        said(&vm),
        [
            "metadata s1",
            "trailing 2",
            "closed 14 (14, Some(\"gone\"))"
        ]
    );
    assert!(matches!(stream.send("late"), Err(Error::Misuse(_))));

    vm.tick().unwrap();
    assert_eq!(vm.grpc_streams().len(), 1, "the module reconnects");
}

#[test]
fn the_module_can_half_close_and_cancel_a_stream() {
    let vm = connected();
    vm.tick().unwrap();
    let stream = vm.grpc_streams().remove(0);
    stream.send("bye").unwrap();
    assert!(stream.is_half_closed() && stream.is_open());
    stream.send("cancel").unwrap();
    assert!(!stream.is_open());
    assert!(vm.grpc_streams().is_empty());
}

#[test]
fn a_stream_to_an_unknown_upstream_fails_and_is_reported_closed() {
    let vm = Host::new()
        .vm(&CALLOUTS)
        .plugin_config("nowhere")
        .start()
        .unwrap();
    vm.tick().unwrap();
    assert_eq!(said(&vm)[0], "open: InternalFailure");
    assert!(vm.grpc_streams().is_empty());
    assert!(
        !vm.is_dead(),
        "the SDK ignores the close of a token it never got"
    );

    vm.host().add_upstream("nowhere");
    vm.tick().unwrap();
    assert_eq!(vm.grpc_streams().len(), 1);
}

#[test]
fn a_service_that_does_not_parse_must_be_the_name_of_a_cluster() {
    let host = Host::new();
    let vm = host
        .vm(&CALLOUTS)
        .plugin_config("raw:plain")
        .start()
        .unwrap();
    vm.tick().unwrap();
    assert_eq!(said(&vm), ["open: ParseFailure"]);
    host.add_upstream("plain");
    vm.tick().unwrap();
    assert_eq!(vm.grpc_streams().len(), 1);
}

#[test]
fn a_service_that_parses_but_names_no_cluster_aborts_envoy() {
    let vm = Host::new()
        .vm(&CALLOUTS)
        .plugin_config("raw:*\u{1}x")
        .start()
        .unwrap();
    let trap = vm.tick().unwrap_err();
    assert!(
        trap.is_trap() && trap.to_string().contains("Envoy aborts"),
        "{trap}"
    );
}

#[test]
fn an_http_call_holds_the_request_until_its_answer_or_its_failure() {
    let vm = connected();
    let (answered, failed) = (
        vm.request([(":path", "/a")]).unwrap(),
        vm.request([(":path", "/b")]).unwrap(),
    );
    assert_eq!(answered.action(), Action::Pause);
    let calls = vm.http_calls();
    assert_eq!(calls[0].request().cluster, "auth");
    assert_eq!(
        calls[0].request().headers.get(":path").as_deref(),
        Some("/auth")
    );
    assert_eq!(calls[0].request().body, b"body");
    assert_eq!(calls[0].request().timeout, Duration::from_secs(2));

    calls[0].reply([(":status", "204")], "12345").unwrap();
    calls[1].fail().unwrap();
    assert!(vm.http_calls().is_empty());
    assert_eq!(
        (answered.action(), failed.action()),
        (Action::Continue, Action::Continue)
    );
    assert_eq!(answered.request_header("x-auth").as_deref(), Some("204"));
    assert_eq!(answered.request_header("x-auth-size").as_deref(), Some("5"));
    assert_eq!(failed.request_header("x-auth").as_deref(), Some("none"));
    assert!(matches!(calls[0].fail(), Err(Error::Misuse(_))));
}

#[test]
fn an_http_call_to_an_unknown_upstream_is_a_bad_argument() {
    let vm = connected();
    vm.host().remove_upstream("auth");
    let http = vm.request([(":path", "/")]).unwrap();
    assert_eq!(
        http.request_header("x-auth").as_deref(),
        Some("BadArgument")
    );
    assert_eq!(http.action(), Action::Continue);
}

#[test]
fn a_grpc_call_is_answered_or_failed_by_the_test() {
    let vm = connected();
    let (answered, failed) = (
        vm.request([(":path", "/grpc")]).unwrap(),
        vm.request([(":path", "/grpc")]).unwrap(),
    );
    let calls = vm.grpc_calls();
    assert_eq!(
        (calls[0].request().method.as_str(), calls[0].message()),
        ("Check", b"who".as_slice())
    );
    assert_eq!(calls[0].request().timeout, Duration::from_secs(2));

    calls[0].reply("someone").unwrap();
    calls[1].fail(4, "too late").unwrap();
    assert_eq!(
        answered.request_header("x-grpc").as_deref(),
        Some("someone")
    );
    assert_eq!(answered.action(), Action::Continue);
    assert_eq!(failed.local_reply().unwrap().status, 503);
    assert!(vm.grpc_calls().is_empty());
}
