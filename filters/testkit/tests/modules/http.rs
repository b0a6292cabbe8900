// SPDX-License-Identifier: Apache-2.0

use std::time::Duration;

use weir_testkit::{Action, Error, Headers, Host, Status};

use crate::fixture::{HTTP, said, start};

#[test]
fn a_module_reads_adds_replaces_and_removes_request_headers() {
    let vm = start(&HTTP);
    let http = vm
        .request([(":path", "/"), ("x-secret", "s"), ("X-Added", "0")])
        .unwrap();
    assert_eq!(http.action(), Action::Continue);
    assert_eq!(http.request_header("x-count").as_deref(), Some("3"));
    assert_eq!(http.request_headers().all("x-added"), ["0", "1"]);
    assert_eq!(http.request_header("x-secret"), None);
}

#[test]
fn header_values_need_not_be_utf8() {
    let vm = start(&HTTP);
    let headers = Headers::from([(":path", "/")]).with("x-bytes", [0xff, 0xfe]);
    let http = vm.request(headers).unwrap();
    assert_eq!(
        http.request_headers().get_bytes("x-bytes"),
        Some([0xff, 0xfe].as_slice())
    );
}

#[test]
fn a_body_that_is_held_back_is_shown_whole_and_passed_on_changed() {
    let vm = start(&HTTP);
    let http = vm.request_open([(":path", "/")]).unwrap();
    assert_eq!(http.body("ab", false).unwrap(), Action::Pause);
    assert_eq!(http.request_body(), b"");
    assert_eq!(http.body("cd", true).unwrap(), Action::Continue);
    assert_eq!(http.request_body(), b"ABCD");
}

#[test]
fn a_body_is_shown_behind_paused_headers_where_that_is_allowed_and_takes_them_along() {
    let build = || Host::new().vm(&HTTP);
    for allowed in [false, true] {
        let vm = match allowed {
            true => build().allow_on_headers_stop_iteration().start().unwrap(),
            false => build().start().unwrap(),
        };
        let http = vm.request_open([(":path", "/pause")]).unwrap();
        assert_eq!(http.body("ab", false).unwrap(), Action::Pause);
        assert_eq!(
            (http.action(), http.request_body()),
            (Action::Pause, vec![])
        );
        http.body("cd", true).unwrap();
        let (action, body): (_, &[u8]) = match allowed {
            true => (Action::Continue, b"ABCD"),
            false => (Action::Pause, b""),
        };
        assert_eq!(
            (http.action(), http.request_body().as_slice()),
            (action, body)
        );
    }
}

#[test]
fn trailers_pass_through_in_both_directions() {
    let vm = start(&HTTP);
    let http = vm.request_open([(":path", "/")]).unwrap();
    http.trailers([("t", "1")]).unwrap();
    http.response_open([(":status", "200")]).unwrap();
    http.response_body("hello", false).unwrap();
    http.response_trailers([("t", "2")]).unwrap();
    assert_eq!(
        http.request_trailers(),
        Headers::from([("t", "1"), ("x-trailer", "seen")])
    );
    assert_eq!(http.response_body_sent(), b"hello!");
    assert_eq!(
        http.response_trailers_sent(),
        Headers::from([("t", "2"), ("x-trailer", "seen")])
    );
}

#[test]
fn request_headers_are_out_of_reach_once_they_passed_until_the_log() {
    let vm = start(&HTTP);
    let http = vm.request([(":path", "/")]).unwrap();
    http.response([(":status", "200")]).unwrap();
    let bad_argument = (Status::BadArgument as u32).to_string();
    assert_eq!(
        http.response_header("x-request-map-status"),
        Some(bad_argument)
    );
    http.finish().unwrap();
    assert_eq!(
        said(&vm)[1..],
        ["on_log: request map 0, response map 0", "on_done"]
    );
}

#[test]
fn the_log_of_a_request_without_a_response_has_no_response_map() {
    let vm = start(&HTTP);
    vm.request([(":path", "/")]).unwrap().finish().unwrap();
    assert_eq!(said(&vm)[1], "on_log: request map 0, response map 2");

    let newest = Host::new()
        .vm(&HTTP)
        .absent_maps_are_not_found_in_log()
        .start()
        .unwrap();
    newest.request([(":path", "/")]).unwrap().finish().unwrap();
    assert_eq!(said(&newest)[1], "on_log: request map 0, response map 1");
}

#[test]
fn a_paused_request_goes_on_when_a_timer_resumes_it() {
    let host = Host::new();
    let vm = host.vm(&HTTP).start().unwrap();
    let (first, second) = (
        vm.request_open([(":path", "/pause")]),
        vm.request([(":path", "/pause")]),
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    assert_eq!(first.body("late", true).unwrap(), Action::Pause);
    assert!(matches!(
        second.response([(":status", "200")]),
        Err(Error::Misuse(_))
    ));

    host.run_for(Duration::from_millis(49)).unwrap();
    assert_eq!(
        (first.action(), second.action()),
        (Action::Pause, Action::Pause)
    );
    host.run_for(Duration::from_millis(1)).unwrap();
    assert_eq!(
        (first.action(), second.action()),
        (Action::Continue, Action::Continue)
    );
    assert_eq!(first.request_header("x-waited").as_deref(), Some("yes"));
    assert_eq!(first.request_body(), b"LATE");
    second.response([(":status", "200")]).unwrap();
}

#[test]
fn a_local_reply_passes_through_the_module_and_ends_the_request() {
    let vm = start(&HTTP);
    let http = vm.request_open([(":path", "/deny")]).unwrap();
    assert_eq!(http.action(), Action::Pause);
    let reply = http.local_reply().unwrap();
    assert_eq!(
        (reply.status, reply.body.as_slice(), reply.grpc_status),
        (403, b"denied".as_slice(), None)
    );
    assert_eq!(reply.headers, Headers::from([("x-why", "path")]));
    assert_eq!(http.response_header(":status").as_deref(), Some("403"));
    assert_eq!(
        http.response_header("content-type").as_deref(),
        Some("text/plain")
    );
    assert_eq!(http.response_body_sent(), b"denied!");
    assert_eq!(http.body("ignored", true).unwrap(), Action::Pause);
    assert!(matches!(
        http.response([(":status", "200")]),
        Err(Error::Misuse(_))
    ));
    http.finish().unwrap();
    assert_eq!(http.local_reply().unwrap().status, 403);
}

#[test]
fn a_local_reply_to_grpc_has_status_200_and_a_grpc_status() {
    let vm = start(&HTTP);
    let http = vm
        .request([(":path", "/deny"), ("content-type", "application/grpc")])
        .unwrap();
    assert_eq!(http.response_header(":status").as_deref(), Some("200"));
    assert_eq!(http.response_header("grpc-status").as_deref(), Some("7"));
    assert_eq!(
        http.response_header("grpc-message").as_deref(),
        Some("denied")
    );
    assert_eq!(http.response_body_sent(), b"");
}

#[test]
fn a_module_can_reset_a_stream() {
    let http = start(&HTTP).request([(":path", "/reset")]).unwrap();
    assert!(http.was_reset());
    assert_eq!(http.action(), Action::Pause);
}

#[test]
fn properties_come_from_the_vm_and_filter_state_goes_to_the_stream() {
    let vm = Host::new()
        .vm(&HTTP)
        .property(&["node", "id"], "sidecar-1")
        .start()
        .unwrap();
    let http = vm.request([(":path", "/")]).unwrap();
    assert_eq!(
        http.filter_state(&["seen_by"]).as_deref(),
        Some(b"sidecar-1".as_slice())
    );

    let http = start(&HTTP).request([(":path", "/")]).unwrap();
    assert_eq!(http.filter_state(&["seen_by"]), None);
}
