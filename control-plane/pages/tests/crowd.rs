// SPDX-License-Identifier: Apache-2.0
//! A crowd of connections that want nothing.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::time::Duration;

use axum::body::Body;
use axum::routing::get;
use axum::{Extension, Router};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::{CancellationToken, DropGuard};
use weir_pages::{Lasts, Limits, serve};

const MOST: usize = 4;
/// Longer than a test: what ends sooner was ended for another reason.
const HOURS: Duration = Duration::from_secs(7200);

async fn pages(longest: Duration, router: Router) -> (SocketAddr, DropGuard) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let limits = Limits {
        most: MOST,
        longest,
    };
    tokio::spawn(serve(listener, router, limits, shutdown.clone()));
    (address, shutdown.drop_guard())
}

fn quick() -> Router {
    Router::new().route("/", get(async || "here"))
}

async fn ask(address: SocketAddr) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let question = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(question).await.unwrap();
    rest(&mut stream).await
}

/// Until it is closed, in whichever way.
async fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer).await;
    String::from_utf8(answer).unwrap()
}

#[tokio::test]
async fn a_thousand_connections_that_say_nothing_keep_nobody_out() {
    let (address, _guard) = pages(HOURS, quick()).await;
    let mut silent = Vec::new();
    for _ in 0..1000 {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    for _ in 0..2 * MOST {
        let answer = ask(address).await;
        assert!(answer.ends_with("here"), "{answer}");
    }
    assert_eq!(rest(&mut silent[0]).await, "", "the oldest made room");
}

#[tokio::test]
async fn who_asks_and_does_not_read_keeps_nobody_out() {
    let huge = Router::new()
        .route("/", get(async || "here"))
        .route("/huge", get(async || "x".repeat(64 << 20)));
    let (address, _guard) = pages(HOURS, huge).await;
    let mut silent = Vec::new();
    for _ in 0..2 * MOST {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let question = b"GET /huge HTTP/1.1\r\nhost: x\r\n\r\n";
        stream.write_all(question).await.unwrap();
        // It is asked: there is an answer.
        stream.read_u8().await.unwrap();
        silent.push(stream);
        let answer = ask(address).await;
        assert!(answer.ends_with("here"), "{answer}");
    }
}

#[tokio::test]
async fn a_question_of_one_byte_now_and_then_keeps_nobody_out() {
    let (address, _guard) = pages(HOURS, quick()).await;
    let mut slow = Vec::new();
    for _ in 0..3 * MOST {
        slow.push(TcpStream::connect(address).await.unwrap());
    }
    for byte in b"GET / HT" {
        for stream in &mut slow {
            // Of some there is nobody any more who reads it.
            let _ = stream.write_all(&[*byte]).await;
        }
        assert!(ask(address).await.ends_with("here"));
    }
}

#[tokio::test]
async fn an_answer_that_takes_long_is_not_cut_off_by_a_crowd() {
    let (begun, go_on): (&'static Notify, &'static Notify) = (
        Box::leak(Box::new(Notify::new())),
        Box::leak(Box::new(Notify::new())),
    );
    let slow = get(async move || {
        begun.notify_one();
        go_on.notified().await;
        "at last"
    });
    let (address, _guard) = pages(HOURS, quick().route("/slow", slow)).await;
    let mut patient = TcpStream::connect(address).await.unwrap();
    let question = b"GET /slow HTTP/1.1\r\nhost: x\r\n\r\n";
    patient.write_all(question).await.unwrap();
    begun.notified().await;
    let mut silent = Vec::new();
    for _ in 0..10 * MOST {
        silent.push(TcpStream::connect(address).await.unwrap());
    }
    assert!(ask(address).await.ends_with("here"));
    go_on.notify_one();
    assert!(rest(&mut patient).await.ends_with("at last"));
}

#[tokio::test]
async fn a_connection_lasts_no_longer_than_it_is_given() {
    let (address, _guard) = pages(Duration::from_millis(50), quick()).await;
    let mut silent = TcpStream::connect(address).await.unwrap();
    assert_eq!(rest(&mut silent).await, "");
}

#[tokio::test]
async fn a_question_without_end_is_refused_at_its_limit() {
    let (address, _guard) = pages(HOURS, quick()).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nx: ").await.unwrap();
    let mut sent = 0;
    // What the system holds between the two is some megabytes at most.
    while sent < 64 << 20 && stream.write_all(&[b'a'; 4096]).await.is_ok() {
        sent += 4096;
    }
    assert!(sent < 64 << 20, "{sent} bytes of one header were taken");
}

/// A word each 10 ms, and at the end.
fn lasting(word: &'static str, words: usize) -> Router {
    let pause = Duration::from_millis(10);
    let handler = async move || {
        let (sender, stream) = tokio::sync::mpsc::channel(1);
        tokio::spawn(async move {
            for _ in 0..words {
                tokio::time::sleep(pause).await;
                // Its reader may have gone.
                let _ = sender.send(Ok::<_, Infallible>(word)).await;
            }
        });
        (
            Extension(Lasts),
            Body::from_stream(ReceiverStream::new(stream)),
        )
    };
    quick().route("/lasting", get(handler))
}

#[tokio::test]
async fn an_answer_that_lasts_goes_on_for_longer_than_a_connection() {
    let (address, _guard) = pages(Duration::from_millis(50), lasting("word", 20)).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let question = b"GET /lasting HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(question).await.unwrap();
    assert_eq!(rest(&mut stream).await.matches("word").count(), 20);
}

#[tokio::test]
async fn an_answer_that_lasts_ends_where_nobody_reads_it() {
    let (gone, is_gone) = tokio::sync::watch::channel(());
    let endless = async move || {
        let (sender, stream) = tokio::sync::mpsc::channel(1);
        let gone = gone.clone();
        tokio::spawn(async move {
            let word: &str = "x".repeat(1 << 20).leak();
            while sender.send(Ok::<_, Infallible>(word)).await.is_ok() {}
            gone.send_replace(());
        });
        (
            Extension(Lasts),
            Body::from_stream(ReceiverStream::new(stream)),
        )
    };
    let router = quick().route("/lasting", get(endless));
    let (address, _guard) = pages(Duration::from_millis(50), router).await;
    let mut stream = TcpStream::connect(address).await.unwrap();
    let question = b"GET /lasting HTTP/1.1\r\nhost: x\r\n\r\n";
    stream.write_all(question).await.unwrap();
    is_gone.clone().changed().await.unwrap();
}
