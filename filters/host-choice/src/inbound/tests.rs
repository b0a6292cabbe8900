// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::bounce::{BOUNCED, MAY_WAIT};
use crate::credits::{CREDITS, DEMAND};
use crate::disposition::Action;
use crate::fake::{FakeHost, FakeRequest};
use crate::handle::VmHandle;
use crate::root::Root;

/// The proxy of a host with two cores, with so many VMs.
fn host(vms: usize) -> (FakeHost, Vec<Root<FakeHost>>) {
    let host = FakeHost::default();
    let root = |_| {
        let vm = VmHandle::new(host.clone());
        let mut root = Root::new(1);
        let json = br#"{"role": "host", "cores": 2}"#;
        assert!(root.on_configure(&host, json, || vm, String::new).is_some());
        root
    };
    let roots = (0..vms).map(root).collect();
    (host, roots)
}

fn arrive(root: &Root<FakeHost>, request: &FakeRequest) -> (Inbound<FakeHost>, Action) {
    let mut inbound = Inbound::new(root.plugin());
    let action = inbound.on_request(request).carry_out(request);
    (inbound, action)
}

/// A request that takes as long as this.
fn run(host: &FakeHost, root: &Root<FakeHost>, took: Duration) {
    answered(host, root, took, "200");
}

fn answered(host: &FakeHost, root: &Root<FakeHost>, took: Duration, status: &str) {
    let request = FakeRequest::new(&[]);
    let (mut inbound, _) = arrive(root, &request);
    host.pass(took);
    request.answer("10.0.0.1:80", &[(":status", status)]);
    inbound.on_response(&request);
    inbound.on_end();
}

fn may_wait(micros: &str) -> FakeRequest {
    FakeRequest::new(&[(MAY_WAIT, micros)])
}

const RUN: Duration = Duration::from_millis(100);

#[test]
fn a_request_is_given_back_with_the_load_where_it_would_wait_longer_than_it_may() {
    let (host, roots) = host(2);
    run(&host, &roots[0], RUN);
    let there: Vec<_> = (0..3)
        .map(|_| arrive(&roots[1], &FakeRequest::new(&[])))
        .collect();
    assert_eq!(host.metric("weir_inbound_requests"), 3);
    // The second of those that wait for one of two cores.
    for (micros, expected) in [("99999", Action::Pause), ("100000", Action::Continue)] {
        let request = may_wait(micros);
        let (_inbound, action) = arrive(&roots[0], &request);
        assert_eq!(action, expected, "{micros}");
        let given_back = expected == Action::Pause;
        assert_eq!(host.metric("weir_inbound_bounced_total"), 1, "{micros}");
        let answers = request.answers();
        assert_eq!(answers.len(), usize::from(given_back));
        for answer in answers {
            assert_eq!((answer.status, answer.details), (429, "weir_bounced"));
            let [(bounced, _), (_, load)] = &answer.headers[..] else {
                panic!("{answer:?}");
            };
            assert_eq!(*bounced, BOUNCED);
            let load = orca::parse(load.as_bytes(), host.now())
                .unwrap()
                .load
                .unwrap();
            assert_eq!((load.in_progress, load.queued), (3, 1));
        }
    }
    drop(there);
    assert_eq!(host.metric("weir_inbound_requests"), 0, "however they end");
}

#[test]
fn what_has_a_core_or_no_bound_is_taken_and_so_is_all_before_a_run_was_seen() {
    let (host, roots) = host(1);
    let full: Vec<_> = (0..9).map(|_| arrive(&roots[0], &may_wait("0"))).collect();
    assert!(full.iter().all(|(_, action)| *action == Action::Continue));
    drop(full);
    run(&host, &roots[0], RUN);
    let one = arrive(&roots[0], &may_wait("0"));
    let two = arrive(&roots[0], &may_wait("0"));
    let given_back = arrive(&roots[0], &may_wait("0"));
    let bad = arrive(&roots[0], &may_wait("soon"));
    let unbounded = arrive(&roots[0], &FakeRequest::new(&[]));
    let actions = [one.1, two.1, given_back.1, bad.1, unbounded.1];
    use Action::{Continue, Pause};
    assert_eq!(actions, [Continue, Continue, Pause, Continue, Continue]);
}

#[test]
fn an_answer_tells_the_load_unless_the_application_does() {
    let (_host, roots) = host(1);
    let told = |headers: &[(&str, &str)]| {
        let request = FakeRequest::new(&[]);
        let (mut inbound, _) = arrive(&roots[0], &request);
        let _others: Vec<_> = (0..3)
            .map(|_| arrive(&roots[0], &FakeRequest::new(&[])))
            .collect();
        request.answer("10.0.0.1:80", headers);
        inbound.on_response(&request);
        request.header(Map::Response, orca::HEADER).unwrap()
    };
    let own = told(&[(":status", "200")]);
    assert!(
        own.starts_with("TEXT named_metrics.weir.in_progress=3,"),
        "{own}"
    );
    assert_eq!(told(&[(orca::HEADER, "TEXT cpu=1")]), "TEXT cpu=1");
}

#[test]
fn a_run_that_waited_for_a_core_does_not_count_as_one() {
    let (host, roots) = host(1);
    run(&host, &roots[0], RUN);
    let mut there: Vec<_> = (0..3)
        .map(|_| arrive(&roots[0], &FakeRequest::new(&[])).0)
        .collect();
    let mut waited = there.pop().unwrap();
    host.pass(RUN * 50);
    waited.on_end();
    // Nor does what was refused, or had no answer.
    drop(there.drain(1..));
    for _ in 0..50 {
        answered(&host, &roots[0], Duration::ZERO, "503");
        drop(arrive(&roots[0], &FakeRequest::new(&[])));
    }
    there.push(arrive(&roots[0], &FakeRequest::new(&[])).0);
    let (_inbound, action) = arrive(&roots[0], &may_wait("49999"));
    assert_eq!(action, Action::Pause);
    // One of two cores and a run.
    let (_inbound, action) = arrive(&roots[0], &may_wait("50000"));
    assert_eq!(action, Action::Continue);
}

fn wants(demand: &str) -> FakeRequest {
    FakeRequest::new(&[(DEMAND, demand)])
}

/// The credits on an answer to this request, which is let through.
fn credits(root: &Root<FakeHost>, request: &FakeRequest) -> Option<String> {
    let (mut inbound, action) = arrive(root, request);
    assert_eq!(action, Action::Continue);
    request.answer("10.0.0.1:80", &[(":status", "200")]);
    inbound.on_response(request);
    request.header(Map::Response, CREDITS)
}

#[test]
fn an_answer_gives_credits_to_who_asks_for_them_and_the_application_hears_of_no_demand() {
    let (_host, roots) = host(1);
    for (demand, expected) in [("1;id=a", Some("2")), ("9;id=b", Some("1"))] {
        let request = wants(demand);
        let credits = credits(&roots[0], &request);
        assert_eq!(credits.as_deref(), expected, "{demand}");
        assert_eq!(request.header(Map::Request, DEMAND), None);
    }
    for malformed in ["", "9", "-1;id=a", "9;id=", "many;id=a"] {
        let request = wants(malformed);
        assert_eq!(credits(&roots[0], &request), None, "{malformed}");
    }
    assert_eq!(credits(&roots[0], &FakeRequest::new(&[])), None);
}

#[test]
fn what_would_wait_for_more_than_twice_the_target_is_refused_where_its_caller_goes_by_credits() {
    let (host, roots) = host(2);
    run(&host, &roots[0], RUN);
    // The next one would wait for 40 of them to end on two cores: 2 s.
    let there: Vec<_> = (0..41)
        .map(|_| arrive(&roots[1], &FakeRequest::new(&[])))
        .collect();
    let (one, action) = arrive(&roots[0], &wants("3;id=a"));
    assert_eq!(action, Action::Continue, "not more than twice 1 s");
    let request = wants("3;id=a");
    let (refused, action) = arrive(&roots[0], &request);
    assert_eq!(action, Action::Pause);
    assert_eq!(host.metric("weir_inbound_refused_total"), 1);
    assert_eq!(host.metric("weir_inbound_requests"), 42);
    let answers = request.answers();
    let answer = &answers[0];
    let (status, grpc_status) = (answer.status, answer.grpc_status);
    let told = (status, grpc_status, answer.details);
    assert_eq!(told, (429, RESOURCE_EXHAUSTED, "weir_overloaded"));
    let [
        ("retry-after", after),
        (orca::HEADER, load),
        (CREDITS, credits),
    ] = &answer.headers[..]
    else {
        panic!("{answer:?}");
    };
    assert!(["1", "2"].contains(&after.as_str()), "{after}");
    let said = orca::parse(load.as_bytes(), host.now()).unwrap();
    assert_eq!(said.load.unwrap().queued, 40);
    assert_eq!(credits, "2");
    drop(refused);
    let (_without, action) = arrive(&roots[0], &FakeRequest::new(&[]));
    assert_eq!(action, Action::Continue, "whoever does not go by credits");
    drop((there, one));
}

#[test]
fn a_request_that_may_be_given_back_is_not_refused() {
    let (host, roots) = host(1);
    run(&host, &roots[0], RUN);
    let _there: Vec<_> = (0..60)
        .map(|_| arrive(&roots[0], &FakeRequest::new(&[])))
        .collect();
    let request = FakeRequest::new(&[(MAY_WAIT, "0"), (DEMAND, "1;id=a")]);
    let (_inbound, action) = arrive(&roots[0], &request);
    assert_eq!(action, Action::Pause);
    assert_eq!(request.answers()[0].details, "weir_bounced");
    assert_eq!(host.metric("weir_inbound_refused_total"), 0);
}

#[test]
fn tunnels_are_no_queue() {
    let (host, roots) = host(1);
    run(&host, &roots[0], RUN);
    let _open: Vec<_> = (0..100)
        .map(|_| {
            let request = FakeRequest::new(&[]);
            let (mut inbound, _) = arrive(&roots[0], &request);
            request.answer("10.0.0.1:80", &[(":status", "101")]);
            inbound.on_response(&request);
            inbound
        })
        .collect();
    assert_eq!(host.metric("weir_inbound_requests"), 0);
    let (_inbound, action) = arrive(&roots[0], &may_wait("0"));
    assert_eq!(action, Action::Continue);
}
