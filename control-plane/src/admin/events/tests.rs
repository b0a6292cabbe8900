// SPDX-License-Identifier: Apache-2.0
use std::net::SocketAddr;
use std::time::Instant;

use prometheus_client::registry::Registry;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::*;
use crate::admin::{App, serve};
use crate::{config, owner::Owner};

/// The admin pages of a weir-control of two hosts.
struct Admin {
    address: SocketAddr,
    shutdown: CancellationToken,
    served: JoinHandle<()>,
}

impl Admin {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.yaml");
        let hosts = "[ { address: 127.0.0.1:1 }, { address: 127.0.0.1:2, draining: true } ]";
        std::fs::write(
            &path,
            format!("clusters: {{ rules: {{ hosts: {hosts} }} }}\n"),
        )
        .unwrap();
        let config = config::load(&path).map_err(|(it, _)| it).unwrap().config;
        let metrics = Metrics::default();
        let mut owner = Owner::new(&config, 1, metrics.clone(), Instant::now());
        let (updates, mut news) = mpsc::channel(1);
        tokio::spawn(async move {
            while let Some(news) = news.recv().await {
                owner.fold(news, Instant::now());
            }
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let app = App::new(updates, metrics, Registry::default());
        let served = tokio::spawn(serve(listener, app, shutdown.clone()));
        Self {
            address,
            shutdown,
            served,
        }
    }

    async fn ask(&self, page: &str, more: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let question = format!("GET {page} HTTP/1.1\r\nhost: x\r\n{more}\r\n");
        stream.write_all(question.as_bytes()).await.unwrap();
        stream
    }

    async fn answer(&self, page: &str, more: &str) -> String {
        rest(self.ask(page, more).await).await
    }
}

async fn rest(mut stream: TcpStream) -> String {
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    text
}

/// Until so many events have come.
async fn read(stream: &mut TcpStream, events: usize) -> String {
    let mut text = String::new();
    while text.matches("\ndata: ").count() < events || !text.ends_with("\n\n\r\n") {
        let mut bytes = vec![0; 1 << 16];
        let read = stream.read(&mut bytes).await.unwrap();
        assert!(read > 0, "it ended: {text}");
        text.push_str(std::str::from_utf8(&bytes[..read]).unwrap());
    }
    text
}

#[tokio::test]
async fn events_come_by_themselves_and_end_at_the_shutdown() {
    let admin = Admin::start().await;
    let mut stream = admin.ask("/events", "").await;
    let text = read(&mut stream, 2).await;
    let head = text.split("\r\n\r\n").next().unwrap().to_lowercase();
    assert!(head.contains("content-type: text/event-stream"), "{head}");
    let mut frames = text.lines().filter_map(|it| it.strip_prefix("data: "));
    let frame: serde_json::Value = serde_json::from_str(frames.next().unwrap()).unwrap();
    let cluster = &frame["clusters"]["rules"];
    assert_eq!(cluster["total"]["hosts"], 2);
    assert_eq!(cluster["hosts"][1]["state"], "draining");
    assert_eq!(frame["traffic"]["rules"]["held"], 0);
    assert_eq!(frame["sidecars"]["weir"], 0);
    admin.shutdown.cancel();
    rest(stream).await;
    admin.served.await.unwrap();
}

#[tokio::test]
async fn one_more_reader_than_there_is_room_for_is_told_so_and_those_who_leave_make_room() {
    let admin = Admin::start().await;
    let mut readers = Vec::new();
    for _ in 0..MOST_READERS {
        readers.push(admin.ask("/events", "").await);
    }
    for reader in &mut readers {
        read(reader, 1).await;
    }
    let refused = admin.answer("/events", "").await;
    assert!(refused.starts_with("HTTP/1.1 503"), "{refused}");
    assert!(refused.contains("16 read already"), "{refused}");
    let tables = admin.answer("/tables", "").await;
    assert!(tables.starts_with("HTTP/1.1 200"), "{tables}");
    readers.pop();
    loop {
        let mut stream = admin.ask("/events", "").await;
        let mut begin = [0; 12];
        stream.read_exact(&mut begin).await.unwrap();
        if begin == *b"HTTP/1.1 200" {
            break;
        }
    }
}

#[tokio::test]
async fn a_reader_that_does_not_read_keeps_no_frame_from_the_others() {
    let admin = Admin::start().await;
    let _silent = admin.ask("/events", "").await;
    let mut stream = admin.ask("/events", "").await;
    read(&mut stream, 2).await;
}

#[tokio::test]
async fn the_past_is_kept_whether_or_not_somebody_reads() {
    let admin = Admin::start().await;
    let past = loop {
        let answer = admin.answer("/past", "").await;
        let body = answer.split("\r\n\r\n").nth(1).unwrap();
        let past: serde_json::Value = serde_json::from_str(body).unwrap();
        if past["hosts"]
            .as_array()
            .is_some_and(|hosts| !hosts.is_empty())
        {
            break past;
        }
    };
    assert_eq!(past["every_ms"], 5000);
    let host = &past["hosts"][1];
    assert_eq!(
        (&host["cluster"], &host["host"]),
        (&"rules".into(), &"127.0.0.1:2".into())
    );
    assert_eq!(
        (&host["state"], &host["level"][0]),
        (&"d".into(), &4096.into())
    );
    assert_eq!(host["in_progress"][0], -1, "nobody has told");
    assert_eq!(past["unix_ms"].as_array().unwrap().len(), 1);
}

#[tokio::test]
async fn a_browser_gets_the_page_and_others_the_list_of_pages() {
    let admin = Admin::start().await;
    let browser = "accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n";
    let page = admin.answer("/", browser).await;
    assert!(page.contains("<!doctype html>"), "{page}");
    for accept in [
        "",
        "accept: */*\r\n",
        "accept: text/plain, text/html;q=0.5\r\n",
    ] {
        let list = admin.answer("/", accept).await;
        assert!(list.contains("/metrics  Prometheus text"), "{list}");
        assert!(!list.contains("<!doctype"), "{list}");
    }
}

#[tokio::test]
async fn nothing_that_a_stranger_names_can_run_in_the_page() {
    let admin = Admin::start().await;
    for page in ["/", "/page/page.js", "/tables", "/past", "/nothing"] {
        let answer = admin.answer(page, "accept: text/html\r\n").await;
        let head = answer.split("\r\n\r\n").next().unwrap();
        for header in [
            "content-security-policy: default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'",
            "frame-ancestors 'none'",
            "x-content-type-options: nosniff",
            "referrer-policy: no-referrer",
        ] {
            assert!(head.contains(header), "{page}: {head}");
        }
    }
}
