// SPDX-License-Identifier: Apache-2.0
//! Certificates that are refused, with the reason on both sides.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, StreamOwned};
use tokio::io::AsyncReadExt;
use tokio_rustls::TlsAcceptor;
use weir_control::client::{Client, Limits};
use weir_control::config::Server;

use crate::certificates::{Authority, Pair};
use crate::program::{Program, until};

const CONFIG: &str = "xds: { listen: \"127.0.0.1:0\", \
    tls: { certificate: control.pem, key: control.key, client_ca: ca.pem } }\n\
    admin: { listen: \"127.0.0.1:0\" }\nclusters: { rules: { hosts: [ { address: 127.0.0.1:9 } ] } }\n";

fn control(authority: &Authority) -> Program {
    let pair = authority.sign("weir-control");
    let files = [
        ("ca.pem", &*authority.certificate),
        ("control.pem", &*pair.certificate),
        ("control.key", &*pair.key),
    ];
    Program::start(CONFIG, &files)
}

/// What a client reads that shows this certificate; none where it is let in.
fn refusal(control: &Program, authority: &Authority, shown: Option<&Pair>) -> Option<String> {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap())
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let mut config = match shown {
        None => builder.with_no_client_auth(),
        Some(pair) => {
            let chain = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
            let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
            builder.with_client_auth_cert(vec![chain], key).unwrap()
        }
    };
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = "weir-control".try_into().unwrap();
    let connection = ClientConnection::new(Arc::new(config), name).unwrap();
    let socket = TcpStream::connect(control.xds).unwrap();
    let limit = Some(Duration::from_secs(60));
    socket.set_read_timeout(limit).unwrap();
    let mut stream = StreamOwned::new(connection, socket);
    // Whoever is let in is sent SETTINGS.
    stream
        .read_exact(&mut [0; 9])
        .err()
        .map(|error| error.to_string())
}

#[test]
fn certificates_that_are_wrong_are_refused_and_both_sides_are_told_why() {
    let (authority, other) = (Authority::new(), Authority::new());
    let control = control(&authority);
    let ours = authority.sign("sidecar-1");
    assert_eq!(refusal(&control, &authority, Some(&ours)), None);
    let expired = authority.sign_between("sidecar-1", 2020, 2021);
    let early = authority.sign_between("sidecar-1", 2500, 2501);
    let foreign = other.sign("sidecar-1");
    let itself = Authority::new().itself();
    for (shown, logged) in [
        (None, "peer sent no certificates"),
        (Some(&expired), "certificate expired"),
        (Some(&early), "certificate not valid yet"),
        // By its name it is the same authority.
        (Some(&foreign), "BadSignature"),
        (Some(&itself), "CaUsedAsEndEntity"),
    ] {
        let before = control.log().len();
        let told = refusal(&control, &authority, shown).expect("let in");
        assert!(told.contains("received fatal alert"), "{logged}: {told}");
        // At most one line a second is written, so ask until this one's turn has come.
        until(logged, || {
            let log = control.log()[before..].to_owned();
            let said = log
                .lines()
                .any(|line| line.contains("a connection was refused") && line.contains(logged));
            if !said {
                refusal(&control, &authority, shown).expect("let in");
            }
            said.then_some(())
        });
    }
    assert!(control.page("/ready").contains("ready"));
}

#[test]
fn who_speaks_without_tls_to_a_port_with_it_is_told_of_in_the_log() {
    let authority = Authority::new();
    let control = control(&authority);
    let mut plain = TcpStream::connect(control.xds).unwrap();
    plain
        .write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
        .unwrap();
    until("a line", || {
        let log = control.log();
        log.contains("a connection was refused").then_some(())
    });
}

/// A server on loopback that shows this certificate, as Consul and Prometheus do.
async fn server(pair: &Pair) -> Server {
    let chain = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![chain], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let _ = stream.read(&mut [0; 1024]).await;
            }
        }
    });
    Server {
        url: format!("https://localhost:{port}"),
        ca: None,
        identity: None,
    }
}

#[tokio::test]
async fn a_consul_or_prometheus_with_a_wrong_certificate_is_not_asked_and_the_complaint_says_why() {
    let (authority, other) = (Authority::new(), Authority::new());
    for (pair, reason) in [
        (authority.sign_between("localhost", 2020, 2021), "expired"),
        (
            authority.sign_between("localhost", 2500, 2501),
            "not valid yet",
        ),
        (authority.sign("elsewhere"), "not valid for name"),
        // By its name it is the same authority.
        (other.sign("localhost"), "BadSignature"),
    ] {
        let server = Server {
            ca: Some(authority.certificate.clone().into_bytes()),
            ..server(&pair).await
        };
        let client = Client::new(&server).unwrap();
        let limits = Limits {
            timeout: Duration::from_secs(60),
            max_bytes: 1024,
        };
        let error = client.get("/", Default::default(), limits).await;
        let error = error.unwrap_err().to_string();
        assert!(error.contains(reason), "{reason}: {error}");
    }
}
