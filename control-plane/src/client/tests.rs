// SPDX-License-Identifier: Apache-2.0
//! Servers that misbehave, and servers with certificates, each a real listener on a free port.

use std::net::SocketAddr;
use std::sync::Arc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use super::*;
use certificates::{Authority, Pair};

#[path = "../../tests/certificates/mod.rs"]
mod certificates;

const LONG: Duration = Duration::from_secs(60);

fn limits(timeout: Duration) -> Limits {
    let max_bytes = 1024;
    Limits { timeout, max_bytes }
}

fn plain(address: SocketAddr) -> Server {
    Server {
        url: format!("http://{address}/prefix"),
        ca: None,
        identity: None,
    }
}

async fn talk(mut stream: impl AsyncRead + AsyncWrite + Unpin, answer: &[u8]) {
    let mut request = [0; 4096];
    let read = stream.read(&mut request).await.unwrap_or(0);
    let request = String::from_utf8_lossy(&request[..read]).to_lowercase();
    assert!(
        request.is_empty() || request.starts_with("get /prefix/x?y http/1.1"),
        "{request}"
    );
    assert!(
        request.is_empty() || request.contains("x-token: secret"),
        "{request}"
    );
    let _ = stream.write_all(answer).await;
    // Whoever is to wait, waits.
    let _ = stream.read(&mut [0; 1]).await;
}

/// A server that answers each connection with these bytes and then waits.
async fn server(answer: Vec<u8>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let answer = answer.clone();
            tokio::spawn(async move { talk(stream, &answer).await });
        }
    });
    address
}

fn http(status: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\nx-index: 7\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

fn headers() -> HeaderMap {
    HeaderMap::from_iter([(
        http::HeaderName::from_static("x-token"),
        http::HeaderValue::from_static("secret"),
    )])
}

async fn ask(server: &Server, timeout: Duration) -> Result<Answer, PollError> {
    let client = Client::new(server).unwrap();
    client.get("/x?y", headers(), limits(timeout)).await
}

async fn fault(address: SocketAddr, timeout: Duration) -> PollError {
    let answer = ask(&plain(address), timeout).await;
    answer.and_then(Answer::good).unwrap_err()
}

#[tokio::test]
async fn an_answer_comes_with_its_headers_and_an_error_with_its_reason() {
    let good = server(http("200 OK", "yes")).await;
    let answer = ask(&plain(good), LONG).await.unwrap();
    assert_eq!(answer.headers["x-index"], "7");
    assert_eq!(answer.good().unwrap(), "yes");
    let denied = server(http("403 Forbidden", "ACL not found\nmore")).await;
    let error = fault(denied, LONG).await;
    assert_eq!(error.to_string(), "bad_status: 403: ACL not found");
    let moved = http("302 Found\r\nLocation: http://127.0.0.1:1/", "");
    assert_eq!(
        fault(server(moved).await, LONG).await.to_string(),
        "bad_status: 302"
    );
}

#[tokio::test]
async fn each_way_to_fail_is_told_from_the_others() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let nobody = listener.local_addr().unwrap();
    drop(listener);
    assert_eq!(fault(nobody, LONG).await.fault, Fault::Refused);
    let short = Duration::from_millis(30);
    assert_eq!(
        fault(server(vec![]).await, short).await.fault,
        Fault::TimedOut
    );
    let stops = b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc".to_vec();
    assert_eq!(
        fault(server(stops).await, short).await.fault,
        Fault::TimedOut
    );
    let ssh = server(b"SSH-2.0\r\n\r\n".to_vec()).await;
    assert_eq!(fault(ssh, LONG).await.fault, Fault::Failed);
    let large = "x".repeat(1025);
    assert_eq!(
        fault(server(http("200 OK", &large)).await, LONG)
            .await
            .fault,
        Fault::TooLarge
    );
    let chunk = format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n401\r\n{large}\r\n");
    let endless = server(chunk.into_bytes()).await;
    assert_eq!(fault(endless, LONG).await.fault, Fault::TooLarge);
}

#[tokio::test]
async fn lines_come_as_they_are_sent_each_within_the_limit() {
    let lines = async |status: &str, chunks: &[&str]| {
        let mut answer = format!("HTTP/1.1 {status}\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in chunks {
            answer.push_str(&format!("{:x}\r\n{chunk}\r\n", chunk.len()));
        }
        let client = Client::new(&plain(server(answer.into_bytes()).await)).unwrap();
        client.lines("/x?y", headers(), limits(LONG)).await.unwrap()
    };
    let long = "x".repeat(900);
    let mut good = lines("200 OK", &["a\n\nb", "c\nd", &long, "\ncut", ""])
        .await
        .unwrap();
    let long = format!("d{long}");
    for line in ["a", "", "bc", &long, "cut"] {
        assert_eq!(good.next().await.unwrap().unwrap(), line);
    }
    assert_eq!(good.next().await.unwrap(), None);
    // Whoever waits for more can stop.
    let mut open = lines("200 OK", &["a\nb"]).await.unwrap();
    assert_eq!(open.next().await.unwrap().unwrap(), "a");
    let short = Duration::from_millis(30);
    assert!(timeout(short, open.next()).await.is_err());
    let endless = "y".repeat(600);
    let mut endless = lines("200 OK", &[&endless, &endless]).await.unwrap();
    assert_eq!(endless.next().await.unwrap_err().fault, Fault::TooLarge);
    let gone = lines("410 Gone", &["too old", ""]).await.unwrap_err();
    assert_eq!((gone.status.as_u16(), &*gone.body), (410, &b"too old"[..]));
}

/// What a socket and its peer's buffer between them, several times over.
const BUFFERS: usize = 32 << 20;

const YES: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nyes";

#[tokio::test]
async fn large_answers_of_one_server_are_read_and_held_one_at_a_time() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = plain(listener.local_addr().unwrap());
    let client = Client::new(&server).unwrap();
    let ask = |max_bytes, timeout| {
        let (client, limits) = (client.clone(), Limits { timeout, max_bytes });
        tokio::spawn(async move { client.get("/x", HeaderMap::new(), limits).await })
    };
    let asked = async |listener: &TcpListener| {
        let (mut stream, _) = listener.accept().await.unwrap();
        let _ = stream.read(&mut [0; 4096]).await;
        stream
    };
    let large = 2 * BUFFERS;
    let one = ask(large, LONG);
    let mut first = asked(&listener).await;
    let length = BUFFERS + 1;
    let head = format!("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n");
    first.write_all(head.as_bytes()).await.unwrap();
    // More than connections buffer: it is being read.
    first.write_all(&vec![b'x'; BUFFERS]).await.unwrap();

    let short = Duration::from_secs(1);
    let (other, small) = (ask(large, short), ask(SMALL, LONG));
    tokio::spawn(async move {
        loop {
            let mut stream = asked(&listener).await;
            let _ = stream.write_all(YES).await;
        }
    });
    assert_eq!(small.await.unwrap().unwrap().body, "yes");
    let error = other.await.unwrap().unwrap_err();
    assert_eq!(error.fault, Fault::TimedOut, "while it is read");

    first.write_all(b"x").await.unwrap();
    let held = one.await.unwrap().unwrap();
    assert_eq!(held.body.len(), length);
    let error = ask(large, short).await.unwrap().unwrap_err();
    assert_eq!(error.fault, Fault::TimedOut, "while it is held");
    drop(held);
    let next = ask(large, LONG).await.unwrap().unwrap();
    assert_eq!(next.body, "yes");
}

/// A server with a certificate; with `clients`, whoever comes must show one of that authority.
async fn secure(pair: &Pair, clients: Option<&Authority>) -> SocketAddr {
    use_ring();
    let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let config = ServerConfig::builder();
    let config = match clients {
        Some(authority) => {
            let mut roots = RootCertStore::empty();
            let pem = authority.certificate.as_bytes();
            roots
                .add(CertificateDer::from_pem_slice(pem).unwrap())
                .unwrap();
            let verifier = WebPkiClientVerifier::builder(Arc::new(roots)).build();
            config.with_client_cert_verifier(verifier.unwrap())
        }
        None => config.with_no_client_auth(),
    };
    let config = config.with_single_cert(vec![certificate], key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(stream) = acceptor.accept(stream).await {
                tokio::spawn(async move { talk(stream, &http("200 OK", "yes")).await });
            }
        }
    });
    address
}

fn trusting(authority: &Authority, address: SocketAddr, shown: Option<&Pair>) -> Server {
    let bytes = |text: &String| text.clone().into_bytes();
    Server {
        url: format!("https://localhost:{}/prefix", address.port()),
        ca: Some(bytes(&authority.certificate)),
        identity: shown.map(|pair| (bytes(&pair.certificate), bytes(&pair.key))),
    }
}

#[tokio::test]
async fn certificates_are_checked_both_ways() {
    let (authority, other) = (Authority::new(), Authority::new());
    let ours = authority.sign("weir-control");
    let open = secure(&authority.sign("localhost"), None).await;
    let answer = ask(&trusting(&authority, open, None), LONG).await.unwrap();
    assert_eq!(answer.body, "yes");
    let closed = secure(&authority.sign("localhost"), Some(&authority)).await;
    let answer = ask(&trusting(&authority, closed, Some(&ours)), LONG).await;
    assert_eq!(answer.unwrap().body, "yes");
    for (what, server) in [
        ("its authority is another", trusting(&other, open, None)),
        ("nothing is shown", trusting(&authority, closed, None)),
        (
            "another authority's is shown",
            trusting(&authority, closed, Some(&other.sign("weir-control"))),
        ),
        (
            "its name is another",
            trusting(&authority, secure(&authority.sign("x"), None).await, None),
        ),
    ] {
        ask(&server, LONG).await.expect_err(what);
    }
}

#[test]
fn certificates_that_cannot_be_read_are_refused() {
    let authority = Authority::new();
    let address = SocketAddr::from(([127, 0, 0, 1], 1));
    let pair = authority.sign("weir-control");
    let broken = Pair {
        certificate: pair.certificate.clone(),
        key: pair.certificate.clone(),
    };
    assert!(Client::new(&trusting(&authority, address, Some(&broken))).is_err());
    let mut server = trusting(&authority, address, None);
    server.ca = Some(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n".to_vec());
    assert!(Client::new(&server).is_err());
}
