// SPDX-License-Identifier: Apache-2.0
use weir_harness::{A, B, cached, table, up};
use weir_tables::v1;

use crate::disposition::{Action, Flow};
use crate::exchange::Exchange;
use crate::fake::{FakeHost, FakeRequest, Worker, holding};
use crate::host::Map;
use crate::reading::SILENT;

const JSON: &[(&str, &str)] = &[("content-type", "application/json; charset=utf-8")];
const PROMPT: &str =
    r#"{"clusters":{"rules":{"key":{"prompt":{"block_bytes":64,"max_bytes":"1KiB"}}}}}"#;
const POINTER: &str = r#"{"clusters":{"rules":{"key":{"json":"/session/id"}}}}"#;
const SESSION: &[u8] = br#"{"session":{"id":"key"},"#;

fn worker(json: &str, table: &v1::HostTable) -> Worker {
    let mut worker = Worker::of(&FakeHost::default(), json);
    worker.tick(50);
    worker.push(table);
    worker
}

/// The headers of a request that has a body have come.
fn begin(
    worker: &mut Worker,
    context: u32,
    headers: &[(&str, &str)],
) -> (FakeRequest, Exchange<FakeHost>, Action) {
    let request = FakeRequest::with_method("POST", headers);
    worker.contexts.insert(context, request.clone());
    let mut exchange = worker.root.exchange(context);
    let action = exchange.on_request(&request, false).carry_out(&request);
    (request, exchange, action)
}

fn more(
    (request, exchange): (&FakeRequest, &mut Exchange<FakeHost>),
    part: &[u8],
    is_last: bool,
) -> Action {
    request.add_body(part);
    exchange.on_body(request, is_last).carry_out(request)
}

/// Two hosts, the second of which has the key.
fn with_key() -> Worker {
    let mut table = table(1, up(&[A, B]));
    table.cache_shards = 1;
    let mut worker = worker(POINTER, &table);
    worker.tick(50);
    let answer = worker.send(&cached(1, 1, &[("key", B)]));
    assert_eq!(answer.error_detail, None);
    worker.tick(50);
    worker
}

fn ended(worker: &Worker, end: &str) -> i64 {
    let name = format!("weir_bodies_total{{reason={end}}}");
    worker.host.metric(&name)
}

#[test]
fn a_request_goes_where_the_value_in_its_body_is_cached_as_soon_as_that_is_here() {
    let mut worker = with_key();
    let (request, mut exchange, action) = begin(&mut worker, 7, JSON);
    assert_eq!((action, request.destination()), (Action::Pause, None));
    let action = more(
        (&request, &mut exchange),
        br#"{"session": {"id": "k"#,
        false,
    );
    assert_eq!((action, worker.in_flight(B)), (Action::Pause, 0));
    let action = more((&request, &mut exchange), br#"ey"}, "#, false);
    assert_eq!(action, Action::Continue);
    assert_eq!(
        request.destination().as_deref(),
        Some("10.0.0.2:80,10.0.0.1:80")
    );
    assert_eq!(
        (request.reason().as_str(), worker.in_flight(B)),
        ("known_cached", 1)
    );
    let action = more((&request, &mut exchange), br#""more": 1}"#, true);
    assert_eq!((action, worker.in_flight(B)), (Action::Continue, 1));
    assert_eq!(ended(&worker, "read"), 1);
    request.answer(B, &[(":status", "200")]);
    exchange.on_response(&request);
    exchange.on_end(&request);
    assert_eq!(worker.in_flight(B), 0);
}

#[test]
fn a_conversation_goes_on_where_it_was() {
    let mut table = table(1, up(&[A, B]));
    table.policy.as_mut().unwrap().selection = v1::Selection::Estimate.into();
    let mut worker = worker(PROMPT, &table);
    let say = |worker: &mut Worker, context, words: usize| {
        let (request, mut exchange, _) = begin(worker, context, JSON);
        let body = format!(r#"{{"prompt":"{}"}}"#, "lorem ipsum ".repeat(words));
        let action = more((&request, &mut exchange), body.as_bytes(), true);
        assert_eq!(action, Action::Continue);
        (request, exchange)
    };
    let host = |request: &FakeRequest| request.destination().unwrap()[..11].to_owned();
    let (first, exchange) = say(&mut worker, 7, 20);
    drop(exchange);
    assert_eq!(first.reason(), "not_cached");
    for words in 20..40 {
        let (next, exchange) = say(&mut worker, 8, words);
        assert_eq!(host(&next), host(&first), "{words}");
        drop(exchange);
    }
    let (again, _ends) = say(&mut worker, 8, 39);
    assert_eq!(again.reason(), "assumed_cached");
}

#[test]
fn what_cannot_be_read_is_decided_at_its_headers() {
    let mut worker = worker(POINTER, &table(1, up(&[A])));
    let json = ("content-type", "application/json");
    for headers in [
        &[][..],
        &[(
            "content-type",
            "multipart/form-data; boundary=application/json",
        )],
        &[("content-type", "text/json5")],
        &[json, ("content-encoding", "gzip")],
    ] {
        let before = ended(&worker, "unread");
        let (request, mut exchange, action) = begin(&mut worker, 7, headers);
        assert_eq!(
            (action, request.reason().as_str()),
            (Action::Continue, "no_key")
        );
        assert_eq!(ended(&worker, "unread"), before + 1, "{headers:?}");
        let action = more((&request, &mut exchange), SESSION, true);
        assert_eq!(
            (action, request.reason().as_str()),
            (Action::Continue, "no_key")
        );
    }
    for headers in [
        &[("content-type", "APPLICATION/vnd.api+JSON")][..],
        &[json, ("content-encoding", "Identity")],
    ] {
        let (_, _exchange, action) = begin(&mut worker, 7, headers);
        assert_eq!(action, Action::Pause, "{headers:?}");
    }
    let request = FakeRequest::new(JSON);
    let (_exchange, action) = worker.ask(7, &request);
    assert_eq!(action, Action::Continue, "it has no body");
}

#[test]
fn a_body_without_the_key_is_decided_at_its_end_and_none_is_refused() {
    let mut worker = worker(POINTER, &table(1, up(&[A])));
    for (body, end) in [
        (&b"{}"[..], "read"),
        (br#"{"session":{"id":[]}}"#, "read"),
        (br#"{"session":{"id":"#, "malformed"),
        (b"", "malformed"),
        (b"session=key", "malformed"),
    ] {
        let before = ended(&worker, end);
        let (request, mut exchange, _) = begin(&mut worker, 7, JSON);
        let action = more((&request, &mut exchange), body, true);
        assert_eq!(
            (action, request.reason().as_str()),
            (Action::Continue, "no_key")
        );
        assert_eq!(ended(&worker, end), before + 1, "{body:?}");
    }
}

#[test]
fn of_a_long_body_so_much_is_read_whatever_chunks_it_comes_in() {
    let mut worker = worker(PROMPT, &table(1, up(&[A])));
    let body = format!(r#"{{"prompt":"{}","model":"m"}}"#, "x".repeat(2000));
    let (request, mut exchange, _) = begin(&mut worker, 7, JSON);
    let (begun, rest) = body.as_bytes().split_at(700);
    assert_eq!(more((&request, &mut exchange), begun, false), Action::Pause);
    assert_eq!(
        more((&request, &mut exchange), rest, false),
        Action::Continue
    );
    assert_eq!(
        (request.reason().as_str(), ended(&worker, "cut")),
        ("not_cached", 1)
    );
    let (request, mut whole, _) = begin(&mut worker, 8, JSON);
    let action = more((&request, &mut whole), body.as_bytes(), true);
    assert_eq!(action, Action::Continue);
    assert_eq!(
        (request.reason().as_str(), ended(&worker, "cut")),
        ("assumed_cached", 2)
    );
}

/// Envoy refuses what it is told to keep and has no room for, and over HTTP/1 a part may be as large as its buffer.
#[test]
fn of_a_body_that_may_not_fit_the_first_part_is_read_and_no_other_waited_for() {
    let mut worker = worker(PROMPT, &table(1, up(&[A])));
    let (length, chunked) = ("content-length", ("transfer-encoding", "chunked"));
    let begun = format!(r#"{{"prompt":"{}"#, "x".repeat(100));
    for (more_headers, waits) in [
        (&[][..], true),
        (&[(length, "4096")], true),
        (&[(length, "4097")], false),
        (&[(length, "123456789012345678901234567890")], false),
        (&[chunked], false),
    ] {
        let headers = [JSON, more_headers].concat();
        let (request, mut exchange, _) = begin(&mut worker, 7, &headers);
        let before = ended(&worker, "cut");
        let action = more((&request, &mut exchange), begun.as_bytes(), false);
        assert_eq!(action == Action::Pause, waits, "{more_headers:?}");
        if !waits {
            assert_ne!(request.reason(), "no_key");
            assert_eq!(ended(&worker, "cut"), before + 1);
        }
        let action = more((&request, &mut exchange), b"\"}", true);
        assert_eq!(action, Action::Continue);
        exchange.on_end(&request);
    }
    assert_eq!(worker.in_flight(A), 0);
}

#[test]
fn a_request_waits_a_second_for_its_body_and_goes_on_without_a_key() {
    let mut worker = worker(PROMPT, &table(1, up(&[A])));
    let (request, mut exchange, _) = begin(&mut worker, 7, JSON);
    worker.tick(950);
    assert_eq!(request.resumed(), 0);
    worker.tick(50);
    assert_eq!(
        (request.resumed(), request.reason().as_str()),
        (1, "no_key")
    );
    assert_eq!((ended(&worker, "late"), worker.in_flight(A)), (1, 1));
    // It comes.
    let all = format!(r#"{{"prompt":"{}"}}"#, "x".repeat(100));
    assert_eq!(
        more((&request, &mut exchange), all.as_bytes(), true),
        Action::Continue
    );
    worker.tick(2000);
    assert_eq!((request.resumed(), worker.in_flight(A)), (1, 1));
    request.answer(A, &[(":status", "200")]);
    exchange.on_response(&request);
    exchange.on_end(&request);
    assert_eq!(worker.in_flight(A), 0);
}

/// Envoy passes on twice what it has of a body that it is told to let go of between two parts of it.
#[test]
fn a_late_request_of_whose_body_a_part_is_here_is_decided_at_the_next_part() {
    let mut worker = worker(PROMPT, &table(1, up(&[A])));
    let begun = format!(r#"{{"prompt":"{}"#, "x".repeat(100));
    for (rest, is_last, reason, end) in [
        // Names of a part would be found again by nobody.
        (&b"x"[..], false, "no_key", "late"),
        (b"\"}", true, "not_cached", "read"),
    ] {
        let (request, mut exchange, _) = begin(&mut worker, 7, JSON);
        assert_eq!(
            more((&request, &mut exchange), begun.as_bytes(), false),
            Action::Pause
        );
        worker.tick(5000);
        assert_eq!(
            (request.resumed(), worker.in_flight(A)),
            (0, 0),
            "it is nowhere yet"
        );
        assert_eq!(
            more((&request, &mut exchange), rest, is_last),
            Action::Continue
        );
        assert_eq!(
            (request.reason().as_str(), ended(&worker, end)),
            (reason, 1)
        );
        assert_eq!((request.resumed(), worker.in_flight(A)), (0, 1));
        exchange.on_end(&request);
    }
}

#[test]
fn where_the_proxy_shows_no_bodies_requests_stop_waiting_and_the_log_says_why() {
    let mut worker = worker(POINTER, &table(1, up(&[A])));
    let waits = |worker: &mut Worker| {
        let (request, exchange, action) = begin(worker, 7, JSON);
        worker.tick(1000);
        assert_eq!(request.reason(), "no_key");
        drop(exchange);
        action == Action::Pause
    };
    for _ in 0..SILENT {
        assert_eq!(worker.host.take_log(), Vec::<String>::new());
        assert!(waits(&mut worker));
    }
    let log = worker.host.take_log();
    assert!(
        log.len() == 1 && log[0].contains("allow_on_headers_stop_iteration"),
        "{log:?}"
    );
    assert!(!waits(&mut worker));
    assert_eq!(ended(&worker, "unread"), 1);
    worker.tick(60_000);
    let (request, mut exchange, action) = begin(&mut worker, 9, JSON);
    assert_eq!(action, Action::Pause, "it is tried again");
    more((&request, &mut exchange), SESSION, false);
    for _ in 0..2 * SILENT {
        assert!(waits(&mut worker), "it shows them, and some are slow");
    }
    let log = worker.host.take_log();
    assert!(log.len() <= 1, "{log:?}");
}

#[test]
fn many_that_wait_in_vain_at_once_are_one_line_of_the_log() {
    let mut worker = worker(POINTER, &table(1, up(&[A])));
    let waiting: Vec<_> = (0..100)
        .map(|context| begin(&mut worker, context, JSON))
        .collect();
    worker.tick(1000);
    assert!(waiting.iter().all(|(request, ..)| request.resumed() == 1));
    assert_eq!(worker.host.take_log().len(), 1);
}

#[test]
fn a_request_that_goes_away_while_it_is_read_leaves_nothing() {
    let mut worker = worker(POINTER, &table(1, up(&[A])));
    let (request, mut exchange, _) = begin(&mut worker, 7, JSON);
    exchange.on_end(&request);
    let (gone, exchange, _) = begin(&mut worker, 8, JSON);
    drop(exchange);
    worker.tick(1000);
    assert_eq!((request.resumed(), gone.resumed()), (0, 0));
    assert_eq!((worker.in_flight(A), ended(&worker, "late")), (0, 0));
}

/// A request that waits with its body still to come would be refused by Envoy, once the buffer is full.
#[test]
fn only_what_is_here_in_whole_may_wait_for_a_host() {
    for (json, part) in [(PROMPT, &br#"{"prompt":""}"#[..]), (POINTER, SESSION)] {
        let mut worker = worker(json, &holding(1, 0));
        let (request, mut exchange, _) = begin(&mut worker, 7, JSON);
        let action = more((&request, &mut exchange), part, true);
        assert_eq!(
            (action, request.reason().as_str()),
            (Action::Pause, "held_for_eligible")
        );
        worker.push(&holding(2, 4096));
        worker.tick(50);
        assert_eq!((request.resumed(), worker.in_flight(A)), (1, 1));
        assert_eq!(exchange.on_body(&request, true), Flow::Send);
    }
    let json = [JSON[0]];
    let others = [("content-type", "text/plain")];
    for (headers, part) in [
        // The key is known, it is no JSON, it is cut, it is not read at all.
        (json, SESSION),
        (json, b"session=key"),
        (json, &b" ".repeat(300 << 10)),
        (others, b"x"),
    ] {
        let mut worker = worker(POINTER, &holding(1, 0));
        let (request, mut exchange, _) = begin(&mut worker, 7, &headers);
        more((&request, &mut exchange), part, false);
        assert_eq!(request.answers()[0].status, 429, "{headers:?}");
        assert_eq!(worker.host.metric("weir_held_requests"), 0);
    }
}

#[test]
fn where_some_keys_are_in_bodies_no_other_request_waits_before_its_own_is_here() {
    let json = r#"{"clusters":{"rules":{},"other":{"key":{"json":"/id"}}}}"#;
    let mut worker = worker(json, &holding(1, 0));
    let (request, ..) = begin(&mut worker, 7, &[]);
    assert_eq!(request.answers()[0].status, 429);
    let request = FakeRequest::new(&[]);
    let (_exchange, action) = worker.ask(8, &request);
    assert_eq!(
        (action, request.reason().as_str()),
        (Action::Pause, "held_for_eligible")
    );
}

#[test]
fn a_caller_that_is_not_believed_has_a_key_in_its_body_all_the_same() {
    let mut worker = with_key();
    let (request, mut exchange, _) = begin(&mut worker, 7, &[JSON[0], ("x-weir-key", "other")]);
    request.set(crate::host::Text::Caller, "10.0.0.9:1234");
    more((&request, &mut exchange), SESSION, false);
    assert_eq!(request.header(Map::Request, "x-weir-key"), None);
    assert_eq!(request.reason(), "known_cached");
    assert_eq!(worker.host.metric("weir_disbelieved_requests_total"), 1);
}
