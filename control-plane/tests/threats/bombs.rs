// SPDX-License-Identifier: Apache-2.0
//! Answers, messages and files that are made to be too much.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use envoy_types::pb::envoy::service::discovery::v3::DeltaDiscoveryRequest;
use envoy_types::pb::envoy::service::discovery::v3::aggregated_discovery_service_client::AggregatedDiscoveryServiceClient;
use tonic::{Code, Status};
use weir_control::config;
use weir_kv_events::zmtp;
use weir_tables::v1::{Report, reports_client::ReportsClient};

use crate::program::{FREE, Program, until};
use crate::waits::end;

/// A server that gives every question this beginning, and then the rest without end.
fn endless(head: &'static str, rest: &'static [u8]) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sent = Arc::new(AtomicU64::new(0));
    let count = sent.clone();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let count = count.clone();
            std::thread::spawn(move || {
                if asked(&mut stream).is_err() || stream.write_all(head.as_bytes()).is_err() {
                    return;
                }
                let block = rest.repeat(65_536 / rest.len().max(1));
                while !block.is_empty() && stream.write_all(&block).is_ok() {
                    count.fetch_add(block.len() as u64, Ordering::Relaxed);
                }
            });
        }
    });
    (address, sent)
}

/// A question's head.
fn asked(stream: &mut TcpStream) -> std::io::Result<String> {
    let (mut head, mut byte) = (Vec::new(), [0]);
    while !head.ends_with(b"\r\n\r\n") {
        stream.read_exact(&mut byte)?;
        head.push(byte[0]);
    }
    Ok(String::from_utf8_lossy(&head).to_lowercase())
}

const OK: &str = "HTTP/1.1 200 OK\r\n\r\n";
const HUGE: &str = "HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\n";
const PACKED: &str = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n";

#[test]
fn answers_without_end_are_left_at_their_limit_and_told() {
    let bombs = [
        ("a page without end", OK, &b"weir_host_in_progress 1\n"[..]),
        ("a line without end", OK, b"a"),
        ("a page of 1 GB", HUGE, b"a"),
        ("arrays without end", OK, b"["),
    ];
    let is_left = |(name, head, rest)| {
        let (address, sent) = endless(head, rest);
        let host = format!("hosts: [ {{ address: \"{address}\" }} ]");
        let sources = "scrape: { interval: 10s, timeout: 60s, max_bytes: 1MiB }, cache: { interval: 10s, timeout: 60s, max_bytes: 1MiB }, prometheus: { address: \"http://ADDRESS\", interval: 10s, timeout: 60s }, consul: { address: \"http://ADDRESS\", connect: false }";
        let sources = sources.replace("ADDRESS", &address.to_string());
        let control = Program::start(
            &format!("{FREE}clusters: {{ rules: {{ {host}, {sources} }} }}\n"),
            &[],
        );
        for source in ["scrape", "cache", "prometheus", "consul"] {
            until(&format!("{name} by {source}"), || {
                let page = control.page("/metrics");
                let told =
                    format!("weir_control_polls_total{{source=\"{source}\",result=\"too_large\"}}");
                page.contains(&told).then_some(())
            });
        }
        let megabytes = control.most_memory() >> 20;
        assert!(
            megabytes < 400,
            "{name}: {megabytes} MB, {} sent",
            sent.load(Ordering::Relaxed)
        );
    };
    std::thread::scope(|scope| {
        for bomb in bombs {
            scope.spawn(move || is_left(bomb));
        }
    });
}

/// A publisher that is ready, and then sends this and nothing but zeros.
fn engine(head: Vec<u8>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let ready = zmtp::ready(zmtp::Socket::Pub);
            let begin = [&zmtp::greeting()[..], &ready, &head].concat();
            std::thread::spawn(move || {
                let zeros = [0; 65_536];
                let mut sent = stream.write_all(&begin);
                while sent.is_ok() {
                    sent = stream.write_all(&zeros);
                }
            });
        }
    });
    port
}

#[test]
fn an_engine_that_sends_without_end_is_left_at_its_limit_and_told() {
    let long = [&[2][..], &(1_u64 << 40).to_be_bytes()].concat();
    for (name, head, result) in [
        ("a frame of a terabyte", long, "too_large"),
        ("frames without end", [1, 0].repeat(100), "too_large"),
        ("messages that are no batches", vec![0, 0], "bad_body"),
    ] {
        let sources = format!("kv_events: {{ port: {}, max_bytes: 1MiB }}", engine(head));
        let control = Program::start(
            &format!(
                "{FREE}clusters: {{ rules: {{ hosts: [ {{ address: \"127.0.0.1:9\" }} ], {sources} }} }}\n"
            ),
            &[],
        );
        until(name, || {
            let told =
                format!("weir_control_polls_total{{source=\"kv_events\",result=\"{result}\"}}");
            control.page("/metrics").contains(&told).then_some(())
        });
        let megabytes = control.most_memory() >> 20;
        assert!(megabytes < 400, "{name}: {megabytes} MB");
    }
}

#[test]
fn packed_answers_are_neither_asked_for_nor_unpacked() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let sources = format!(
        "hosts: [ {{ address: \"{address}\" }} ], scrape: {{ interval: 100ms }}, cache: {{ interval: 100ms }}, \
         prometheus: {{ address: \"http://{address}\", interval: 100ms }}"
    );
    let control = Program::start(
        &format!("{FREE}clusters: {{ rules: {{ {sources} }} }}\n"),
        &[],
    );
    // An empty text, as gzip packs it.
    let packed = [
        31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    ];
    listener.set_nonblocking(true).unwrap();
    let mut questions: Vec<String> = Vec::new();
    for path in ["/metrics", "/cache", "/api/v1"] {
        until(path, || {
            if let Ok((mut stream, _)) = listener.accept() {
                stream.set_nonblocking(false).unwrap();
                questions.push(asked(&mut stream).unwrap());
                let _ = stream.write_all(PACKED.as_bytes());
                let _ = stream.write_all(&packed);
            }
            let mut questions = questions.iter();
            questions
                .any(|question| question.contains(path))
                .then_some(())
        });
    }
    for question in &questions {
        assert!(!question.contains("accept-encoding"), "{question}");
    }
    until("a complaint", || {
        control
            .page("/metrics")
            .contains("source=\"scrape\",result=\"bad_body\"")
            .then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_over_their_limit_end_their_stream_and_nothing_else() {
    let control = Program::start(
        &format!("{FREE}clusters: {{ rules: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\n"),
        &[],
    );
    let channel = tonic::transport::Endpoint::from_shared(format!("http://{}", control.xds))
        .unwrap()
        .connect()
        .await
        .unwrap();
    let large = |bytes| "x".repeat(bytes);
    let request = DeltaDiscoveryRequest {
        type_url: large((4 << 20) + 1),
        ..Default::default()
    };
    let answer = AggregatedDiscoveryServiceClient::new(channel.clone())
        .delta_aggregated_resources(tokio_stream::iter([request]))
        .await;
    // Of a stream that cannot be read on nothing is said.
    let ended = match answer {
        Err(_) => true,
        Ok(answer) => !matches!(answer.into_inner().message().await, Ok(Some(_))),
    };
    assert!(ended);
    let report = Report {
        proxy: large((16 << 20) + 1),
        ..Default::default()
    };
    let answer = ReportsClient::new(channel)
        .stream(tokio_stream::iter([report]))
        .await;
    let status = match answer {
        Err(status) => status,
        Ok(answer) => end(&mut answer.into_inner()).await,
    };
    assert!(too_large(&status), "{status:?}");
    let ended = "weir_control_report_streams_ended_total{reason=\"too_large\"} 1";
    assert!(control.page("/metrics").contains(ended));
    assert!(control.log().contains("stream of reports refused"));
    assert_eq!(control.page("/ready"), "ready\n");
}

fn too_large(status: &Status) -> bool {
    [Code::OutOfRange, Code::ResourceExhausted].contains(&status.code())
}

#[test]
fn a_configuration_that_unfolds_or_nests_without_end_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let mut laughs = String::from("a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]");
    for level in 1..12 {
        let below = vec![format!("*a{}", level - 1); 9].join(", ");
        laughs.push_str(&format!(", a{level}: &a{level} [{below}]"));
    }
    let deep = format!("a: {}{}", "[".repeat(50_000), "]".repeat(50_000));
    for inner in [laughs, deep] {
        let path = folder.path().join("c.yaml");
        let text = format!(
            "clusters: {{ r: {{ hosts: [ {{ address: 127.0.0.1:9 }} ] }} }}\nstandalone: {{ filter: {{ wasm: w, config: {{ {inner} }} }}, listeners: [] }}\n"
        );
        std::fs::write(&path, text).unwrap();
        let (error, _) = config::load(&path).unwrap_err();
        assert_eq!(error.to_string().lines().count(), 1, "{error}");
        assert!(error.to_string().len() < 1000, "{error}");
    }
}
