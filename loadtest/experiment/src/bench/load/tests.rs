// SPDX-License-Identifier: Apache-2.0
use std::convert::Infallible;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};

use super::*;

/// A host on a thread that stays until the tests end; one that speaks HTTP/2 where that is wanted.
fn host_of(
    is_http2: bool,
    answer: impl Fn(u64) -> Response<Full<Bytes>> + Send + Sync + 'static,
) -> SocketAddr {
    let runtime = one_thread().unwrap();
    let listener = runtime
        .block_on(tokio::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0)))
        .unwrap();
    let address = listener.local_addr().unwrap();
    let (answer, count) = (Arc::new(answer), Arc::new(AtomicU64::new(0)));
    thread::spawn(move || {
        runtime.block_on(async {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let (answer, count) = (Arc::clone(&answer), Arc::clone(&count));
                let service = service_fn(move |_: Request<Incoming>| {
                    let answer = answer(count.fetch_add(1, Ordering::Relaxed));
                    async move { Ok::<_, Infallible>(answer) }
                });
                let stream = TokioIo::new(stream);
                if is_http2 {
                    let served = http2::Builder::new(TokioExecutor::new());
                    tokio::spawn(served.serve_connection(stream, service));
                } else {
                    let served = http1::Builder::new();
                    tokio::spawn(served.serve_connection(stream, service));
                }
            }
        })
    });
    address
}

fn host(answer: impl Fn(u64) -> Response<Full<Bytes>> + Send + Sync + 'static) -> SocketAddr {
    host_of(false, answer)
}

fn ok() -> Response<Full<Bytes>> {
    Response::new(Full::from("ok"))
}

fn work() -> Rc<Work> {
    let shot = Shot::new("/", &[("x-weir-key", "k")], None, AnsweredBy::Any).unwrap();
    Rc::new(Work::new(vec![shot]))
}

#[test]
fn streams_of_one_connection_are_answered_side_by_side() {
    let target = host_of(true, |_| ok());
    let mut pool = Pool::connect(target, Protocol::Http2(4), work()).unwrap();
    for _ in 0..2 {
        let answers = pool.send(Pace::Closed, Duration::ZERO).unwrap();
        assert_eq!(answers.count, 4);
    }
}

#[test]
fn an_open_loop_sends_what_it_said() {
    let mut pool = Pool::connect(host(|_| ok()), Protocol::Http1(8), work()).unwrap();
    let answers = pool
        .send(Pace::Open(500.0), Duration::from_millis(400))
        .unwrap();
    assert_eq!(answers.count, 200);
    assert!(answers.quantile(0.5) > 0.0);
}

#[test]
fn a_closed_loop_uses_its_connections_again() {
    let mut pool = Pool::connect(host(|_| ok()), Protocol::Http1(2), work()).unwrap();
    for _ in 0..2 {
        let answers = pool.send(Pace::Closed, Duration::from_millis(50)).unwrap();
        assert!(answers.count >= 2);
    }
    // Each has sent once, also when the time was over before this thread had the core.
    let answers = pool.send(Pace::Closed, Duration::ZERO).unwrap();
    assert_eq!(answers.count, 2);
}

/// One connection and a host that stops for a while: a loop that waited for it would see one late
/// answer; of the requests that were due meanwhile, every one is late.
#[test]
fn a_pause_is_counted_for_every_request_that_was_due_in_it() {
    const PAUSE: Duration = Duration::from_millis(200);
    let target = host(|number| {
        if number == 20 {
            thread::sleep(PAUSE);
        }
        ok()
    });
    let mut pool = Pool::connect(target, Protocol::Http1(1), work()).unwrap();
    let answers = pool
        .send(Pace::Open(200.0), Duration::from_millis(500))
        .unwrap();
    assert_eq!(answers.count, 100);
    // From when it was due: a slow machine makes more of them late.
    let late = answers.latencies.count_between(50_000_000, u64::MAX);
    assert!(late >= 25, "{late} of some 30 were late");
}

#[test]
fn an_answer_that_is_not_200_ends_the_load() {
    let target = host(|number| {
        let mut answer = ok();
        if number == 3 {
            *answer.status_mut() = http::StatusCode::SERVICE_UNAVAILABLE;
        }
        answer
    });
    let mut pool = Pool::connect(target, Protocol::Http1(1), work()).unwrap();
    let sent = pool.send(Pace::Closed, Duration::from_secs(5));
    let error = sent.map(drop).unwrap_err().to_string();
    assert!(error.contains("503"), "{error}");
}
