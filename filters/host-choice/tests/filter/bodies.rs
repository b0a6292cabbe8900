// SPDX-License-Identifier: Apache-2.0
//! Keys that are in bodies.

use weir_testkit::{Action, HttpStream};

use weir_harness::{A, B, Chosen, Proxy, TICKS, milliseconds, resource, table, up};
use weir_tables::v1;

const PROMPT: &str = r#"{"clusters":{"rules":{"key":{"prompt":{"block_bytes":64}}}}}"#;

/// Two hosts, of which that with the beginning of the prompt is expected to be done first.
fn proxy(shows_bodies: bool) -> Proxy {
    let proxy = match shows_bodies {
        true => Proxy::showing_bodies(PROMPT),
        false => Proxy::start(PROMPT),
    };
    proxy.run(TICKS);
    let mut table = table(1, up(&[A, B]));
    table.policy.as_mut().unwrap().selection = v1::Selection::Estimate.into();
    proxy.ads().accepts(&[resource(&table)]);
    proxy.run(TICKS);
    proxy
}

fn begin(proxy: &Proxy) -> HttpStream {
    let headers = [
        (":path", "/v1/chat/completions"),
        (":method", "POST"),
        (":authority", "rules"),
        ("content-type", "application/json"),
    ];
    proxy.worker().request_open(headers).unwrap()
}

fn bodies(proxy: &Proxy, end: &str) -> u64 {
    let metrics = proxy.host.metrics();
    metrics.counter(&format!("weir_bodies_total;.;reason=.={end};.;"))
}

fn talk(words: usize) -> String {
    let said = "what was said ".repeat(words);
    format!(r#"{{"messages":[{{"role":"user","content":"{said}"}}],"model":"m"}}"#)
}

#[test]
fn a_conversation_stays_where_its_beginning_is_and_its_body_is_as_it_came() {
    let proxy = proxy(true);
    let mut host = None;
    for words in 20..30 {
        let request = begin(&proxy);
        assert_eq!(request.action(), Action::Pause);
        let body = talk(words);
        for chunk in body.as_bytes().chunks(50) {
            assert_eq!(request.destination(), Vec::<String>::new());
            request.body(chunk, false).unwrap();
        }
        request.body("", true).unwrap();
        assert_eq!(request.action(), Action::Continue);
        assert_eq!(request.request_body(), body.as_bytes());
        let first = request.first();
        assert_eq!(&first, host.get_or_insert(first.clone()), "{words}");
        request.answered_by(&first);
    }
    assert_eq!(bodies(&proxy, "read"), 10);
}

#[test]
fn a_body_that_ends_with_trailers_is_read() {
    let proxy = proxy(true);
    let request = begin(&proxy);
    request.body(talk(20), false).unwrap();
    assert_eq!(request.action(), Action::Pause);
    request.trailers([("t", "1")]).unwrap();
    assert_eq!(
        (request.action(), request.reason()),
        (Action::Continue, "not_cached".into())
    );
}

#[test]
fn a_long_prompt_goes_on_before_it_is_here_in_whole() {
    let proxy = proxy(true);
    let request = begin(&proxy);
    let body = talk(30_000);
    assert!(body.len() > 400_000);
    let mut passed = 0;
    for chunk in body.as_bytes().chunks(16_384) {
        request.body(chunk, false).unwrap();
        passed += chunk.len();
        // 256 KiB is the most that is read.
        assert_eq!(
            request.action() == Action::Continue,
            passed >= 256 << 10,
            "{passed}"
        );
    }
    assert_eq!(request.request_body(), body.as_bytes());
    assert_eq!(
        (request.reason().as_str(), bodies(&proxy, "cut")),
        ("not_cached", 1)
    );
}

#[test]
fn a_body_that_does_not_come_is_waited_for_a_second() {
    for shows_bodies in [true, false] {
        let proxy = proxy(shows_bodies);
        let request = begin(&proxy);
        proxy.run(milliseconds(900));
        assert_eq!(request.action(), Action::Pause);
        proxy.run(milliseconds(200));
        assert_eq!(
            (request.action(), request.reason()),
            (Action::Continue, "no_key".into())
        );
        request.body(r#"{"messages":[]}"#, true).unwrap();
        assert_eq!(request.request_body(), br#"{"messages":[]}"#);
    }
}

#[test]
fn a_late_body_goes_on_once_with_its_next_part() {
    let proxy = proxy(true);
    let request = begin(&proxy);
    request.body(r#"{"messages":["#, false).unwrap();
    proxy.run(milliseconds(3_000));
    assert_eq!(request.action(), Action::Pause);
    request.body("]", false).unwrap();
    assert_eq!(
        (request.action(), request.reason()),
        (Action::Continue, "no_key".into())
    );
    request.body("}", true).unwrap();
    assert_eq!(request.request_body(), br#"{"messages":[]}"#);
}
