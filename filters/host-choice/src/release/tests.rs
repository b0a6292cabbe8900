// SPDX-License-Identifier: Apache-2.0
use std::cell::RefCell;
use std::rc::Rc;

use weir_harness::A;

use crate::disposition::Action;
use crate::exchange::Exchange;
use crate::fake::{FakeHost, FakeRequest, Worker, counted, holding, shed_of};
use crate::host::Map;

const OK: &[(&str, &str)] = &[(":status", "200")];

fn key() -> FakeRequest {
    FakeRequest::new(&[("x-weir-key", "key")])
}

#[test]
fn a_held_request_goes_on_when_a_host_opens_and_counts_there_once() {
    let mut worker = Worker::with(&holding(1, 0));
    let request = key();
    let (mut exchange, action) = worker.ask(7, &request);
    assert_eq!((action, request.destination()), (Action::Pause, None));
    assert_eq!(request.reason(), "held_for_eligible");
    assert_eq!(worker.host.metric("weir_held_requests"), 1);
    worker.tick(50);
    assert_eq!((request.resumed(), worker.in_flight(A)), (0, 0));
    worker.push(&holding(2, 4096));
    worker.tick(50);
    assert_eq!((request.resumed(), worker.in_flight(A)), (1, 1));
    assert_eq!(request.destination().as_deref(), Some(A));
    assert_eq!(worker.host.metric("weir_held_requests"), 0);
    worker.tick(50);
    assert_eq!(request.resumed(), 1, "it goes on once");
    request.answer(A, OK);
    exchange.on_response(&request);
    exchange.on_end(&request);
    drop(exchange);
    let record = worker.record();
    assert_eq!((counted(&record), record.held), ((1, 1), 1));
    assert_eq!(record.hosts[0].ok, 1);
}

#[test]
fn a_held_request_may_take_less_time_when_it_goes_on() {
    const TIME_OUT: &str = "x-envoy-upstream-rq-timeout-ms";
    let mut worker = Worker::with(&holding(1, 0));
    let request = FakeRequest::new(&[(TIME_OUT, "400")]);
    let (_exchange, _) = worker.ask(7, &request);
    worker.push(&holding(2, 4096));
    worker.tick(149);
    let left = request.header(Map::Request, TIME_OUT);
    assert_eq!((request.resumed(), left.as_deref()), (1, Some("250")));
}

#[test]
fn a_held_request_whose_time_is_over_is_shed() {
    let mut worker = Worker::with(&holding(1, 0));
    let request = key();
    let (mut exchange, _) = worker.ask(7, &request);
    worker.tick(499);
    assert_eq!(request.answers(), vec![]);
    worker.tick(1);
    assert_eq!(request.answers()[0].status, 429);
    assert_eq!(request.resumed(), 0, "an answered request does not go on");
    exchange.on_response(&request);
    exchange.on_end(&request);
    assert_eq!(worker.host.metric("weir_held_requests"), 0);
    assert_eq!(counted(&worker.record()), (0, 0));
}

#[test]
fn a_held_request_whose_refusal_cannot_be_given_goes_on_to_envoys_choice() {
    let mut worker = Worker::with(&holding(1, 0));
    let request = key();
    let (_exchange, _) = worker.ask(7, &request);
    request.deafen();
    worker.tick(500);
    assert_eq!((request.resumed(), request.answers()), (1, vec![]));
}

#[test]
fn a_held_request_whose_caller_leaves_gives_its_place_up_once() {
    let ways: [fn(&mut Exchange<FakeHost>, &FakeRequest); 2] = [
        |exchange, request| exchange.on_end(request),
        |exchange, _| *exchange = Exchange::new(0, None),
    ];
    for way in ways {
        let mut worker = Worker::with(&holding(1, 0));
        let request = key();
        let (mut exchange, _) = worker.ask(7, &request);
        way(&mut exchange, &request);
        drop(exchange);
        worker.tick(50);
        let gone = worker.host.metric("weir_held_total{reason=gone}");
        assert_eq!((gone, worker.host.metric("weir_held_requests")), (1, 0));
        worker.push(&holding(2, 4096));
        worker.tick(50);
        assert_eq!((request.resumed(), worker.in_flight(A)), (0, 0));
        assert_eq!(counted(&worker.record()), (0, 0));
    }
}

#[test]
fn a_held_request_whose_context_is_gone_is_sent_nowhere() {
    let mut worker = Worker::with(&holding(1, 0));
    let request = key();
    let (_exchange, _) = worker.ask(7, &request);
    worker.contexts.clear();
    worker.push(&holding(2, 4096));
    worker.tick(50);
    assert_eq!((request.resumed(), worker.in_flight(A)), (0, 0));
    assert_eq!(worker.host.metric("weir_held_requests"), 0);
}

#[test]
fn a_held_request_that_went_on_and_away_without_an_end_is_taken_back() {
    let mut worker = Worker::with(&holding(1, 0));
    let (exchange, _) = worker.ask(7, &key());
    worker.push(&holding(2, 4096));
    worker.tick(50);
    assert_eq!(worker.in_flight(A), 1);
    drop(exchange);
    assert_eq!(counted(&worker.record()), (1, 1));
    assert_eq!(worker.in_flight(A), 0);
}

#[test]
fn a_proxy_that_calls_back_while_it_resumes_or_answers_finds_the_decision() {
    for (level, in_flight, shed) in [(4096, 1, 0), (0, 0, 1)] {
        let mut worker = Worker::with(&holding(1, 0));
        let request = key();
        let (exchange, _) = worker.ask(7, &request);
        let exchange = Rc::new(RefCell::new(exchange));
        let (host, answered) = (request.clone(), Rc::clone(&exchange));
        // As a host answers at once, or the refusal passes through the filter.
        request.call_back(move || {
            host.answer(A, OK);
            answered.borrow_mut().on_response(&host);
            answered.borrow_mut().on_end(&host);
        });
        worker.push(&holding(2, level));
        worker.tick(500);
        assert_eq!(worker.host.take_log(), Vec::<String>::new());
        let record = worker.record();
        assert_eq!(counted(&record), (in_flight, in_flight));
        assert_eq!((shed_of(&record), worker.in_flight(A)), (shed, 0));
        assert_eq!(worker.host.metric("weir_held_requests"), 0);
    }
}

#[test]
fn each_answer_lets_one_more_go_on_than_the_hosts_that_are_open() {
    let mut worker = Worker::with(&holding(1, 0));
    // Of one rank: the first to come goes on first.
    let ask = |_| FakeRequest::new(&[("x-weir-user", "ann")]);
    let waiting: Vec<_> = (0..6).map(ask).collect();
    let mut exchanges: Vec<_> = (0..)
        .zip(&waiting)
        .map(|(at, key)| worker.ask(at, key).0)
        .collect();
    let went_on = || waiting.iter().map(FakeRequest::resumed).sum::<usize>();
    worker.push(&holding(2, 4096));
    worker.tick(50);
    assert_eq!(went_on(), 1, "one host is open");
    worker.tick(50);
    assert_eq!(went_on(), 2);
    exchanges[0].on_end(&waiting[0]);
    exchanges[1].on_end(&waiting[1]);
    worker.tick(50);
    assert_eq!(went_on(), 5);
}
