// SPDX-License-Identifier: Apache-2.0
//! The replayer against servers in this process, on port 0.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, Method, StatusCode};
use axum::response::{IntoResponse, Response};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::Barrier;
use weir_replay::backoff::Backoff;
use weir_replay::bodies::Bodies;
use weir_replay::dispatch::{Pace, replay};
use weir_replay::exchange::{Sender, Settings};
use weir_replay::record::{Cache, Outcome, Record};
use weir_replay::recorder::Message;
use weir_replay::workload::Request;

fn settings(targets: &[SocketAddr]) -> Settings {
    Settings {
        targets: targets.to_vec(),
        host_header: None,
        path: "/".to_owned(),
        max_attempts: 4,
        deadline: Duration::from_secs(600),
        backoff: Backoff {
            base: Duration::from_micros(100),
            cap: Duration::from_millis(1),
        },
        seed: 1,
    }
}

fn workload(keys: &[&str]) -> Vec<Request> {
    let request = |(n, key): (usize, &&str)| Request {
        t_us: n as u64 * 100,
        key: (*key).to_owned(),
        priority: "low".to_owned(),
        user: "u".to_owned(),
        run_us: 7,
        bytes: 8,
        body: None,
        sender: None,
    };
    keys.iter().enumerate().map(request).collect()
}

/// Replays and returns the records in the order of the workload.
async fn records(workload: Vec<Request>, settings: Settings, max_in_flight: usize) -> Vec<Record> {
    records_of(
        workload,
        Sender::new(settings, Bodies::default()),
        max_in_flight,
    )
    .await
}

async fn records_of(workload: Vec<Request>, sender: Sender, max_in_flight: usize) -> Vec<Record> {
    let (outbox, inbox) = mpsc::channel();
    let pace = Pace {
        speed: 1.0,
        max_in_flight,
    };
    replay(workload, Arc::new(sender), &pace, &outbox).await;
    drop(outbox);
    let mut records: Vec<_> = inbox
        .into_iter()
        .filter_map(|message| match message {
            Message::Ended(record) => Some(*record),
            Message::Sent => None,
        })
        .collect();
    records.sort_by_key(|record| record.index);
    records
}

async fn serve(router: Router) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async { axum::serve(listener, router).await });
    addr
}

/// Status and `retry-after`.
type Answer = (u16, Option<&'static str>);

/// Answers by key: a list of statuses, the last one for ever; counts attempts.
#[derive(Clone, Default)]
struct Script {
    answers: Arc<BTreeMap<String, Vec<Answer>>>,
    attempts: Arc<Mutex<HashMap<String, usize>>>,
}

async fn scripted(State(script): State<Script>, headers: HeaderMap) -> Response {
    let key = headers["x-weir-key"].to_str().unwrap().to_owned();
    let attempt = {
        let mut attempts = script.attempts.lock().unwrap();
        let n = attempts.entry(key.clone()).or_default();
        *n += 1;
        *n - 1
    };
    let answers = &script.answers[&key];
    let (status, retry_after) = answers[attempt.min(answers.len() - 1)];
    let mut response = StatusCode::from_u16(status).unwrap().into_response();
    if let Some(seconds) = retry_after {
        let headers = response.headers_mut();
        headers.insert("retry-after", seconds.parse().unwrap());
    }
    response
}

#[tokio::test]
async fn a_server_that_stalls_does_not_delay_what_comes_after() {
    const N: usize = 64;
    // Nobody is answered before everybody has asked.
    let all = Arc::new(Barrier::new(N));
    let handler = move || {
        let all = Arc::clone(&all);
        async move {
            all.wait().await;
        }
    };
    let addr = serve(Router::new().fallback(handler)).await;
    let records = records(workload(&["k"; N]), settings(&[addr]), N).await;
    assert!(records.iter().all(|r| r.outcome == Outcome::Ok));
    // From its offset: the first request has waited for the last one's offset.
    assert!(records[0].duration_us >= (N as u64 - 1) * 100);
}

#[tokio::test]
async fn beyond_the_limit_a_request_fails_unsent_and_is_counted() {
    let addr = serve(Router::new().fallback(std::future::pending::<()>)).await;
    let settings = Settings {
        deadline: Duration::from_millis(50),
        ..settings(&[addr])
    };
    let records = records(workload(&["k"; 3]), settings, 2).await;
    let outcomes: Vec<_> = records.iter().map(|r| r.outcome).collect();
    assert_eq!(
        outcomes,
        [Outcome::Timeout, Outcome::Timeout, Outcome::Failed]
    );
    assert_eq!(records[2].attempts, 0);
    assert_eq!(records[2].reason.as_deref(), Some("replayer_full"));
}

#[tokio::test]
async fn shed_and_unavailable_requests_are_tried_again_and_others_are_not() {
    let script = Script {
        answers: Arc::new(BTreeMap::from([
            (
                "shed_twice".to_owned(),
                vec![(429, Some("0")), (429, None), (200, None)],
            ),
            ("down_once".to_owned(), vec![(503, None), (200, None)]),
            ("always_shed".to_owned(), vec![(429, None)]),
            ("always_down".to_owned(), vec![(503, None)]),
            ("broken".to_owned(), vec![(500, None)]),
            ("come_back_tomorrow".to_owned(), vec![(429, Some("86400"))]),
        ])),
        ..Script::default()
    };
    let addr = serve(Router::new().fallback(scripted).with_state(script.clone())).await;
    let keys: Vec<&str> = script.answers.keys().map(String::as_str).collect();
    let records = records(workload(&keys), settings(&[addr]), 100).await;
    let ends: BTreeMap<_, _> = records
        .iter()
        .map(|r| {
            (
                r.request.key.as_str(),
                (r.outcome, r.attempts, r.shed_attempts),
            )
        })
        .collect();
    let expected = BTreeMap::from([
        ("shed_twice", (Outcome::Ok, 3, 2)),
        ("down_once", (Outcome::Ok, 2, 0)),
        ("always_shed", (Outcome::Shed, 4, 4)),
        ("always_down", (Outcome::Failed, 4, 0)),
        ("broken", (Outcome::Failed, 1, 0)),
        ("come_back_tomorrow", (Outcome::Shed, 1, 1)),
    ]);
    assert_eq!(ends, expected);
    for record in &records {
        let made = script.attempts.lock().unwrap()[&record.request.key];
        assert_eq!(made, record.attempts as usize, "{}", record.request.key);
    }
}

#[tokio::test]
async fn a_refused_connection_is_tried_again_and_then_failed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    drop(listener);
    let records = records(workload(&["k"]), settings(&[addr]), 1).await;
    let record = &records[0];
    assert_eq!(
        (record.outcome, record.attempts, record.status),
        (Outcome::Failed, 4, None)
    );
}

#[tokio::test]
async fn targets_take_turns_and_the_answer_is_taken_over() {
    let answer = |name: &'static str| {
        move |headers: HeaderMap| async move {
            for (header, value) in [
                ("host", "rules.example"),
                ("x-weir-key", "k"),
                ("x-weir-priority", "low"),
                ("x-weir-user", "u"),
                ("x-emulate-run-us", "7"),
                ("x-emulate-bytes", "8"),
            ] {
                assert_eq!(headers[header], value);
            }
            let told = [
                ("x-weir-host", name),
                ("x-weir-reason", "known_cached"),
                ("x-worker-cache", "hit"),
                ("x-worker-wait-us", "30"),
                ("x-worker-fetch-us", "0"),
                ("x-worker-run-us", "10"),
            ];
            (told, "done").into_response()
        }
    };
    let a = serve(Router::new().fallback(answer("a"))).await;
    let b = serve(Router::new().fallback(answer("b"))).await;
    let settings = Settings {
        host_header: Some("rules.example".parse().unwrap()),
        ..settings(&[a, b])
    };
    let records = records(workload(&["k"; 4]), settings, 100).await;
    let hosts: Vec<_> = records.iter().filter_map(|r| r.host.as_deref()).collect();
    assert_eq!(hosts, ["a", "b", "a", "b"]);
    let first = &records[0];
    assert_eq!(first.outcome, Outcome::Ok);
    assert_eq!(first.reason.as_deref(), Some("known_cached"));
    assert_eq!((first.cache, first.wait_us), (Some(Cache::Hit), Some(30)));
    assert_eq!(first.slowdown(), Some(0.75));
}

/// A GET without content, or a POST of `rules` once more after a 503.
async fn method_and_body(
    State(attempts): State<Arc<Mutex<HashMap<Method, usize>>>>,
    method: Method,
    headers: HeaderMap,
    body: String,
) -> StatusCode {
    let content_type = headers.get("content-type").map(|v| v.to_str().unwrap());
    let length = headers.get("content-length").map(|v| v.to_str().unwrap());
    match method {
        Method::GET => assert_eq!((content_type, length, &*body), (None, None, "")),
        _ => assert_eq!(
            (content_type, length, &*body),
            (Some("application/json"), Some("5"), "rules")
        ),
    }
    let mut attempts = attempts.lock().unwrap();
    let attempt = attempts.entry(method.clone()).or_default();
    *attempt += 1;
    if method == Method::POST && *attempt == 1 {
        return StatusCode::SERVICE_UNAVAILABLE;
    }
    StatusCode::OK
}

#[tokio::test]
async fn a_request_with_a_body_is_a_post_of_it_and_its_retry_too() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.json"), "rules").unwrap();
    let mut requests = workload(&["k"; 2]);
    requests[1].body = Some("a.json".to_owned());
    let mut bodies = Bodies::new(Some(folder.path().to_owned()));
    bodies.load(2, &requests[1]).unwrap();
    let attempts = Arc::new(Mutex::new(HashMap::new()));
    let router = Router::new()
        .fallback(method_and_body)
        .with_state(Arc::clone(&attempts));
    let addr = serve(router).await;
    let records = records_of(requests, Sender::new(settings(&[addr]), bodies), 100).await;
    assert!(records.iter().all(|r| r.outcome == Outcome::Ok));
    let expected = HashMap::from([(Method::GET, 1), (Method::POST, 2)]);
    assert_eq!(*attempts.lock().unwrap(), expected);
}

#[tokio::test]
async fn a_streamed_answer_has_no_run_time_and_no_slowdown() {
    let answer = || async {
        (
            [("x-worker-wait-us", "30"), ("x-worker-cache", "hit")],
            "ok",
        )
    };
    let addr = serve(Router::new().fallback(answer)).await;
    let records = records(workload(&["k"]), settings(&[addr]), 1).await;
    let record = &records[0];
    assert_eq!((record.outcome, record.wait_us), (Outcome::Ok, Some(30)));
    assert_eq!((record.run_us, record.slowdown()), (None, None));
}

/// Answers every connection with these bytes and closes it.
async fn cut_off(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let addr = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = Vec::new();
            while !request.ends_with(b"\r\n\r\n") {
                request.push(stream.read_u8().await.unwrap());
            }
            stream.write_all(answer.as_bytes()).await.unwrap();
        }
    });
    addr
}

#[tokio::test]
async fn an_answer_that_is_cut_short_is_broken_and_tried_again() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nshort\r\n",
    ] {
        let addr = cut_off(answer).await;
        let records = records(workload(&["k"]), settings(&[addr]), 1).await;
        let record = &records[0];
        assert_eq!(
            (record.outcome, record.attempts, record.status),
            (Outcome::Failed, 4, None),
            "{answer:?}"
        );
    }
}
