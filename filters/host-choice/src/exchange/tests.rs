// SPDX-License-Identifier: Apache-2.0
mod any_path;
mod watched;

use weir_harness::{A, B, busy, table, up};
use weir_tables::v1;

use super::*;
use crate::destination;
use crate::disposition::Action;
use crate::fake::{FakeHost, FakeRequest, RULES, Worker, counted, hedging, holding, shed_of};
use crate::host::Number;

const OK: &[(&str, &str)] = &[(":status", "200")];
const UNAVAILABLE: &[(&str, &str)] = &[(":status", "503")];
/// Envoy's response flag UpstreamConnectionFailure.
const NOT_CONNECTED: u64 = 0x20;

/// The same where nobody waits.
fn closed() -> v1::HostTable {
    let mut closed = holding(1, 0);
    closed.policy.as_mut().unwrap().holding = None;
    closed
}

fn is_hedged(request: &FakeRequest) -> bool {
    let header = request.header(Map::Request, "x-envoy-hedge-on-per-try-timeout");
    header.is_some()
}

fn key() -> FakeRequest {
    FakeRequest::new(&[("x-weir-key", "key")])
}

#[test]
fn a_request_counts_at_the_host_that_is_named_until_it_ends() {
    let mut worker = Worker::with(&table(1, up(&[A])));
    let request = key();
    let (mut exchange, action) = worker.ask(7, &request);
    assert_eq!(action, Action::Continue);
    assert_eq!(request.destination().as_deref(), Some(A));
    assert_eq!(request.reason(), "not_cached");
    assert_eq!(worker.in_flight(A), 1);
    request.answer(A, OK);
    exchange.on_response(&request);
    assert_eq!(worker.in_flight(A), 1, "its body is not here yet");
    exchange.on_end(&request);
    assert_eq!(worker.in_flight(A), 0);
    exchange.on_end(&request);
    drop(exchange);
    let record = worker.record();
    assert_eq!(counted(&record), (1, 1), "once, however often it ends");
    assert_eq!(record.hosts[0].ok, 1);
}

#[test]
fn requests_of_a_cluster_that_is_not_enabled_are_left_to_envoy_also_beside_a_star() {
    for others in ["", r#","*":{"table":"rules"}"#] {
        let json = format!(r#"{{"clusters":{{"rules":{{"enabled":false}}{others}}}}}"#);
        let mut worker = Worker::of(&FakeHost::default(), &json);
        worker.tick(50);
        worker.push(&table(1, up(&[A])));
        let request = FakeRequest::new(&[("x-weir-key", "key"), (destination::HEADER, B)]);
        let (exchange, action) = worker.ask(7, &request);
        assert_eq!((action, request.destination()), (Action::Continue, None));
        drop(exchange);
        assert_eq!(worker.in_flight(A), 0, "{json}");
    }
}

#[test]
fn a_caller_that_is_not_believed_is_counted_and_said_once() {
    let mut worker = Worker::with(&table(1, up(&[A])));
    for context in 7..9 {
        let request = key();
        request.set(Text::Caller, "10.0.0.9:1234");
        let _exchange = worker.ask(context, &request);
        assert_eq!(request.reason(), "no_key");
    }
    assert_eq!(worker.host.metric("weir_disbelieved_requests_total"), 2);
    let log = worker.host.take_log();
    let said = log.iter().filter(|line| line.contains("`trust`"));
    assert_eq!(said.count(), 1, "{log:?}");
}

#[test]
fn an_exchange_that_goes_away_without_an_end_is_taken_back_before_the_next_decision() {
    let mut worker = Worker::with(&table(1, up(&[A])));
    let (first, _) = worker.ask(7, &key());
    let (second, _) = worker.ask(8, &key());
    assert_eq!(worker.in_flight(A), 2);
    drop(first);
    let (third, _) = worker.ask(9, &key());
    assert_eq!(worker.in_flight(A), 2, "the second and the third");
    drop((second, third));
    let record = worker.record();
    assert_eq!(worker.in_flight(A), 0, "a tick takes back too");
    assert_eq!(counted(&record), (3, 3));
    assert_eq!(record.hosts[0].no_answer, 3);
}

#[test]
fn a_request_that_nobody_admits_is_answered_and_never_in_flight() {
    let mut worker = Worker::with(&closed());
    let request = key();
    let (mut exchange, action) = worker.ask(7, &request);
    assert_eq!(action, Action::Pause);
    let answers = request.answers();
    let [answer] = answers.as_slice() else {
        panic!("one answer: {answers:?}");
    };
    assert_eq!((answer.status, answer.grpc_status), (429, 8));
    assert_eq!(answer.details, "weir_overloaded");
    let (name, seconds) = answer.headers[0].clone();
    assert_eq!(name, "retry-after");
    assert!(seconds.parse::<u32>().unwrap() >= 1);
    exchange.on_response(&request);
    exchange.on_end(&request);
    let record = worker.record();
    assert_eq!((counted(&record), shed_of(&record)), ((0, 0), 1));
}

#[test]
fn a_refusal_that_cannot_be_given_leaves_the_request_to_envoy() {
    let mut worker = Worker::with(&closed());
    let request = key();
    request.deafen();
    let (_exchange, action) = worker.ask(7, &request);
    assert_eq!((action, request.answers()), (Action::Continue, vec![]));
}

#[test]
fn a_destination_that_the_caller_sent_is_removed_where_envoy_chooses() {
    let told = [("x-gateway-destination-endpoint", "10.9.9.9:1")];
    let mut no_table = Worker::of(&FakeHost::default(), RULES);
    let request = FakeRequest::new(&told);
    let (_exchange, action) = no_table.ask(7, &request);
    assert_eq!((action, request.destination()), (Action::Continue, None));
    assert_eq!(request.reason(), "no_table");
    let mut without = Exchange::<FakeHost>::new(7, None);
    let request = FakeRequest::new(&told);
    let action = without.on_request(&request, true).carry_out(&request);
    assert_eq!((action, request.destination()), (Action::Continue, None));
    without.on_response(&request);
    without.on_end(&request);
}

#[test]
fn a_request_whose_header_cannot_be_set_is_counted_nowhere() {
    let mut worker = Worker::with(&table(1, up(&[A])));
    let request = key();
    request.deafen();
    let (mut exchange, action) = worker.ask(7, &request);
    assert_eq!((action, worker.in_flight(A)), (Action::Continue, 0));
    exchange.on_end(&request);
    assert_eq!(counted(&worker.record()), (0, 0));
}

#[test]
fn a_request_that_another_host_answers_counts_there() {
    let mut worker = Worker::with(&table(1, up(&[A, B])));
    let request = key();
    let (mut exchange, _) = worker.ask(7, &request);
    let named = request.destination().unwrap();
    let (first, other) = match named.starts_with(A) {
        true => (A, B),
        false => (B, A),
    };
    request.answer(other, OK);
    request.set_number(Number::Attempts, 2);
    exchange.on_response(&request);
    let at = |address| worker.in_flight(address);
    assert_eq!((at(first), at(other)), (0, 1));
    exchange.on_end(&request);
    let record = worker.record();
    let of = |address| record.hosts.iter().find(|host| host.address == address);
    let (first, other) = (of(first).unwrap(), of(other).unwrap());
    assert_eq!((first.no_answer, first.unconnected), (1, 1));
    assert_eq!((other.ok, other.in_flight), (1, 0));
}

#[test]
fn a_host_that_takes_no_connection_is_counted_as_unconnected_when_the_request_ends() {
    let mut worker = Worker::with(&table(1, up(&[A])));
    let request = key();
    let (mut exchange, _) = worker.ask(7, &request);
    request.answer(A, UNAVAILABLE);
    request.set_number(Number::ResponseFlags, NOT_CONNECTED);
    exchange.on_response(&request);
    exchange.on_end(&request);
    let record = worker.record();
    let host = &record.hosts[0];
    assert_eq!(
        (host.server_error, host.no_answer, host.unconnected),
        (0, 1, 1)
    );
    assert_eq!(worker.in_flight(A), 0);
}

#[test]
fn debug_headers_say_reason_and_host() {
    let json = r#"{"clusters":{"rules":{}},"debug":true}"#;
    let mut worker = Worker::of(&FakeHost::default(), json);
    worker.tick(50);
    worker.push(&table(1, up(&[A])));
    let request = FakeRequest::new(&[]);
    let (mut exchange, _) = worker.ask(7, &request);
    request.answer(A, OK);
    exchange.on_response(&request);
    let header = |name| request.header(Map::Response, name);
    assert_eq!(header("x-weir-reason").as_deref(), Some("no_key"));
    assert_eq!(header("x-weir-host").as_deref(), Some(A));
}

#[test]
fn a_second_try_counts_until_the_answer_the_end_or_the_exchange_goes() {
    let ways: [fn(&mut Exchange<FakeHost>, &FakeRequest); 3] = [
        |exchange, request| {
            request.answer(A, OK);
            exchange.on_response(request);
        },
        |exchange, request| exchange.on_end(request),
        |exchange, _| *exchange = Exchange::new(0, None),
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let mut worker = Worker::with(&hedging());
        let mut open = Vec::new();
        // As many as the idle cores of B let through.
        let last = loop {
            let request = FakeRequest::new(&[]);
            let (exchange, _) = worker.ask(open.len() as u32, &request);
            if !is_hedged(&request) {
                break exchange;
            }
            open.push((exchange, request));
            assert!(open.len() < 10, "B has four cores");
        };
        assert!(!open.is_empty(), "some are hedged");
        drop(last);
        let (exchange, request) = &mut open[0];
        way(exchange, request);
        let request = FakeRequest::new(&[]);
        let (_exchange, _) = worker.ask(20, &request);
        assert!(is_hedged(&request), "way {number} frees B's core");
    }
}

#[test]
fn a_second_try_that_envoy_cannot_be_told_of_counts_nowhere() {
    let mut worker = Worker::with(&hedging());
    let request = FakeRequest::new(&[]);
    request.deafen_to("x-envoy-max-retries");
    let (_exchange, _) = worker.ask(7, &request);
    assert_eq!(request.destination(), Some(format!("{A},{B}")));
    let hedges = worker.vm.enter(|vm| vm.hedges("rules")).unwrap();
    let none = weir_policy::Hedges::default();
    assert_eq!(format!("{hedges:?}"), format!("{none:?}"));
}

#[test]
fn a_callback_from_within_another_is_logged_and_its_request_is_left_to_envoy() {
    let mut worker = Worker::with(&table(1, up(&[A])));
    let (request, ended) = (key(), key());
    let (mut open, _) = worker.ask(7, &ended);
    let vm = worker.vm.clone();
    let action = vm.enter(|_| {
        open.on_end(&ended);
        worker.ask(8, &request).1
    });
    assert_eq!(action, Some(Action::Continue));
    assert_eq!(request.destination(), None);
    let log = worker.host.take_log();
    assert_eq!(log.len(), 2, "{log:?}");
    assert!(log[0].contains("from within"), "{log:?}");
    assert_eq!(counted(&worker.record()), (1, 1), "the end is not lost");
    assert_eq!(worker.in_flight(A), 0);
}

/// One host that has a queue, by the policy of credits.
fn crediting() -> v1::HostTable {
    let mut crediting = table(1, vec![busy(A, 9, 5)]);
    crediting.policy.as_mut().unwrap().overload = v1::Overload::Breakwater.into();
    crediting
}

/// A request that is answered by A with these headers.
fn answered(worker: &mut Worker, context: u32, headers: &[(&str, &str)]) -> FakeRequest {
    let request = key();
    let (mut exchange, action) = worker.ask(context, &request);
    assert_eq!(action, Action::Continue);
    request.answer(A, headers);
    exchange.on_response(&request);
    exchange.on_end(&request);
    request
}

#[test]
fn no_more_goes_to_a_host_than_it_gave_credits_for_and_it_hears_how_many_are_wanted() {
    let mut worker = Worker::with(&crediting());
    let request = answered(
        &mut worker,
        1,
        &[(":status", "200"), ("x-weir-credits", "2")],
    );
    assert_eq!(request.header(Map::Response, "x-weir-credits"), None);
    let demand = |request: &FakeRequest| {
        let demand = request.header(Map::Request, "x-weir-demand").unwrap();
        let (requests, vm) = demand.split_once(";id=").unwrap();
        (requests.to_owned(), vm.to_owned())
    };
    let (wanted, vm) = demand(&request);
    assert_eq!(wanted, "1");
    let requests = [key(), key(), key()];
    let asked: Vec<_> = (2..)
        .zip(&requests)
        .map(|(context, request)| worker.ask(context, request))
        .collect();
    use Action::{Continue, Pause};
    let actions: Vec<_> = asked.iter().map(|(_, action)| *action).collect();
    assert_eq!(actions, [Continue, Continue, Pause]);
    assert_eq!(requests[2].answers()[0].status, 429);
    assert_eq!(requests[2].reason(), "overloaded");
    drop(asked);
    let (_exchange, _) = worker.ask(9, &requests[2]);
    // One in flight, and one that nobody admitted a moment ago.
    assert_eq!(demand(&requests[2]), ("2".to_owned(), vm));
}

#[test]
fn credits_that_nobody_can_read_change_nothing_and_go_no_further() {
    let mut worker = Worker::with(&crediting());
    for bad in ["", "-1", "some"] {
        let request = answered(
            &mut worker,
            1,
            &[(":status", "200"), ("x-weir-credits", bad)],
        );
        let left = request.header(Map::Response, "x-weir-credits");
        assert_eq!(left.as_deref(), (bad.is_empty()).then_some(""));
    }
    let sent: Vec<_> = (2..6).map(|context| worker.ask(context, &key())).collect();
    assert!(sent.iter().all(|(_, action)| *action == Action::Continue));
}

#[test]
fn without_the_policy_nobody_is_asked_for_credits_nor_believed() {
    let mut worker = Worker::with(&table(1, vec![busy(A, 9, 5)]));
    let request = answered(
        &mut worker,
        1,
        &[(":status", "200"), ("x-weir-credits", "1")],
    );
    assert_eq!(request.header(Map::Request, "x-weir-demand"), None);
    let sent: Vec<_> = (2..6).map(|context| worker.ask(context, &key())).collect();
    assert!(sent.iter().all(|(_, action)| *action == Action::Continue));
}

#[test]
fn what_a_caller_says_of_its_own_demand_does_not_reach_a_host() {
    let forged = [("x-weir-demand", "4000000000;id=1")];
    for (table, expected) in [(table(1, up(&[A])), None), (crediting(), Some("1"))] {
        let mut worker = Worker::with(&table);
        let request = FakeRequest::new(&forged);
        let (_exchange, _) = worker.ask(1, &request);
        let demand = request.header(Map::Request, "x-weir-demand");
        let wanted = demand.as_deref().and_then(|demand| demand.split_once(';'));
        assert_eq!(wanted.map(|(requests, _)| requests), expected);
        assert!(!demand.unwrap_or_default().ends_with("id=1"));
    }
}
