// SPDX-License-Identifier: Apache-2.0
//! Requests whose bodies come after their headers.

use super::*;
use crate::bounce::MAY_WAIT;
use crate::disposition::Action;
use crate::fake::{FakeHost, FakeRequest};
use crate::handle::VmHandle;
use crate::root::Root;

const RUN: Duration = Duration::from_millis(100);

/// The proxy of a host with one core, which has seen a run.
fn host(bodies: bool) -> (FakeHost, Root<FakeHost>) {
    let host = FakeHost::default();
    let (vm, mut root) = (VmHandle::new(host.clone()), Root::new(1));
    let json = format!(r#"{{"role": "host", "cores": 1, "bodies": {bodies}}}"#);
    let tick = root.on_configure(&host, json.as_bytes(), || vm, String::new);
    assert!(tick.is_some());
    let request = FakeRequest::new(&[]);
    let (mut inbound, _) = begin(&root, &request);
    // What it takes to send it is no part of the run.
    host.pass(Duration::from_secs(3600));
    let _ = inbound.on_body(&request, true);
    host.pass(RUN);
    request.answer("10.0.0.1:80", &[(":status", "200")]);
    inbound.on_response(&request);
    inbound.on_end();
    (host, root)
}

fn begin(root: &Root<FakeHost>, request: &FakeRequest) -> (Inbound<FakeHost>, Action) {
    let mut inbound = Inbound::new(root.plugin());
    let action = inbound.on_headers(request).carry_out(request);
    (inbound, action)
}

/// One that is here in whole.
fn work(root: &Root<FakeHost>) -> Inbound<FakeHost> {
    let (mut inbound, _) = begin(root, &FakeRequest::new(&[]));
    let _ = inbound.on_body(&FakeRequest::new(&[]), true);
    inbound
}

fn hurried() -> FakeRequest {
    FakeRequest::new(&[(MAY_WAIT, "0")])
}

#[test]
fn a_request_that_would_wait_too_long_is_given_back_at_the_end_of_its_body() {
    let (host, root) = host(true);
    let _there = work(&root);
    let request = hurried();
    let (mut inbound, action) = begin(&root, &request);
    assert_eq!(action, Action::Pause);
    assert_eq!(inbound.on_body(&request, false), Flow::Hold);
    assert!(request.answers().is_empty());
    let last = inbound.on_body(&request, true).carry_out(&request);
    assert_eq!(last, Action::Pause);
    assert_eq!(request.answers()[0].status, 429);
    assert_eq!(host.metric("weir_inbound_bounced_total"), 1);
    assert_eq!(host.metric("weir_inbound_requests"), 1);
}

#[test]
fn a_core_that_is_free_by_the_end_of_the_body_takes_the_request() {
    let (host, root) = host(true);
    let there = work(&root);
    let request = hurried();
    let (mut inbound, _) = begin(&root, &request);
    drop(there);
    assert_eq!(inbound.on_body(&request, true), Flow::Send);
    assert_eq!(host.metric("weir_inbound_requests"), 1);
    drop(inbound);
    assert_eq!(host.metric("weir_inbound_requests"), 0);
}

#[test]
fn a_body_is_not_waited_for_where_that_is_not_configured_or_not_needed() {
    for (bodies, busy) in [(false, true), (true, false)] {
        let (_host, root) = host(bodies);
        let _there = busy.then(|| work(&root));
        let request = hurried();
        let (mut inbound, action) = begin(&root, &request);
        assert_eq!(action, Action::Continue);
        assert_eq!(inbound.on_body(&request, false), Flow::Send);
        assert_eq!(inbound.on_body(&request, true), Flow::Send);
    }
}

#[test]
fn requests_that_are_still_being_sent_are_no_queue() {
    let (host, root) = host(false);
    let _slow: Vec<_> = (0..1000)
        .map(|_| begin(&root, &FakeRequest::new(&[])))
        .collect();
    assert_eq!(host.metric("weir_inbound_requests"), 0);
    let (mut first, action) = begin(&root, &hurried());
    assert_eq!(action, Action::Continue);
    let _ = first.on_body(&hurried(), true);
    // One run, not an hour, is before the second.
    let waits = |micros: u128| {
        let request = FakeRequest::new(&[(MAY_WAIT, &micros.to_string())]);
        let mut inbound = Inbound::new(root.plugin());
        inbound.on_request(&request).carry_out(&request)
    };
    assert_eq!(waits(RUN.as_micros() - 1), Action::Pause);
    assert_eq!(waits(RUN.as_micros()), Action::Continue);
}

#[test]
fn what_is_answered_before_it_was_sent_in_whole_is_work_but_no_run() {
    let (host, root) = host(false);
    let request = FakeRequest::new(&[]);
    for _ in 0..50 {
        let (mut inbound, _) = begin(&root, &request);
        request.answer("10.0.0.1:80", &[(":status", "200")]);
        inbound.on_response(&request);
        assert_eq!(host.metric("weir_inbound_requests"), 1);
        let _ = inbound.on_body(&request, true);
        host.pass(RUN * 50);
    }
    assert_eq!(host.metric("weir_inbound_requests"), 0);
    let _there = work(&root);
    let mut inbound = Inbound::new(root.plugin());
    let in_time = FakeRequest::new(&[(MAY_WAIT, &RUN.as_micros().to_string())]);
    let action = inbound.on_request(&in_time).carry_out(&in_time);
    assert_eq!(action, Action::Continue);
}
