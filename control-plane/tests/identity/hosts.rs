// SPDX-License-Identifier: Apache-2.0
//! Hosts that are asked by HTTPS.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufStream};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::certificates::{Authority, Pair};
use crate::program::{Program, until};

const METRICS: &str = "weir_host_in_progress 3\n\
    weir_host_queued{priority=\"0\"} 0\n\
    weir_host_queuing_delay_seconds_sum 0\nweir_host_queuing_delay_seconds_count 0\n";
const CACHE: &str = r#"{"version":1,"epoch":1,"reset":true,"added":["a","b"]}"#;

/// A host that answers whoever shows a certificate of its authority, and remembers what it was shown.
struct Host {
    address: SocketAddr,
    shown: Arc<Mutex<Vec<CertificateDer<'static>>>>,
}

impl Host {
    async fn start(authority: &Authority, pair: &Pair) -> Self {
        let mut roots = RootCertStore::empty();
        let root = CertificateDer::from_pem_slice(authority.certificate.as_bytes()).unwrap();
        roots.add(root).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier =
            WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone()).build();
        let chain = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_client_cert_verifier(verifier.unwrap())
            .with_single_cert(vec![chain], key)
            .unwrap();
        let acceptor = TlsAcceptor::from(Arc::new(config));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shown = Arc::<Mutex<Vec<_>>>::default();
        let remembered = shown.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let Ok(stream) = acceptor.accept(stream).await else {
                    continue;
                };
                let chain = stream.get_ref().1.peer_certificates().unwrap();
                remembered
                    .lock()
                    .unwrap()
                    .push(chain[0].clone().into_owned());
                tokio::spawn(answer(BufStream::new(stream)));
            }
        });
        Self { address, shown }
    }

    fn was_shown(&self, pair: &Pair) -> bool {
        let certificate = CertificateDer::from_pem_slice(pair.certificate.as_bytes()).unwrap();
        self.shown.lock().unwrap().contains(&certificate)
    }
}

/// Answers questions of one connection.
async fn answer<S>(mut stream: BufStream<S>) -> std::io::Result<()>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    loop {
        let mut question = String::new();
        stream.read_line(&mut question).await?;
        let mut header = String::new();
        while stream.read_line(&mut header).await? > 2 {
            header.clear();
        }
        let body = match question.split(' ').nth(1) {
            Some("/metrics") => METRICS,
            Some(_) => CACHE,
            None => return Ok(()),
        };
        let answer = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(answer.as_bytes()).await?;
        stream.flush().await?;
    }
}

/// weir-control that asks a host so; `name` is what its certificate has to have.
fn control(host: &Host, authority: &Authority, pair: &Pair, name: &str) -> Program {
    let tls = format!(
        "tls: {{ ca: ca.pem, certificate: client.pem, key: client.key, server_name: {name} }}"
    );
    let config = format!(
        "xds: {{ listen: \"127.0.0.1:0\" }}\nadmin: {{ listen: \"127.0.0.1:0\" }}\n\
         clusters: {{ rules: {{ hosts: [ {{ address: \"{}\" }} ], \
         scrape: {{ interval: 100ms, timeout: 60s, {tls} }}, cache: {{ interval: 100ms, timeout: 60s, {tls} }} }} }}\n",
        host.address
    );
    let files = [
        ("ca.pem", &*authority.certificate),
        ("client.pem", &*pair.certificate),
        ("client.key", &*pair.key),
    ];
    Program::start(&config, &files)
}

fn host(control: &Program) -> Value {
    control.tables()["clusters"]["rules"]["hosts"][0].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn hosts_are_asked_by_https_with_a_certificate_which_is_reread_when_it_changes() {
    let authority = Authority::new();
    let [first, second] = [(); 2].map(|()| authority.sign("weir-control"));
    let asked = Host::start(&authority, &authority.sign("host.rules")).await;
    let control = control(&asked, &authority, &first, "host.rules");
    until("figures and keys", || {
        let host = host(&control);
        (host["in_progress"] == 3 && host["known_keys"] == 2).then_some(())
    });
    assert!(asked.was_shown(&first) && !asked.was_shown(&second));

    std::fs::write(control.path("client.key"), &second.key).unwrap();
    std::fs::write(control.path("client.pem"), &second.certificate).unwrap();
    until("the new certificate", || {
        asked.was_shown(&second).then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_host_with_a_wrong_certificate_is_not_asked_and_the_complaint_says_why() {
    let (authority, other) = (Authority::new(), Authority::new());
    let ours = authority.sign("weir-control");
    for (pair, reason) in [
        (authority.sign("elsewhere"), "not valid for name"),
        (other.sign("host.rules"), "BadSignature"),
    ] {
        let asked = Host::start(&authority, &pair).await;
        let control = control(&asked, &authority, &ours, "host.rules");
        until(reason, || {
            let sources = &host(&control)["sources"];
            let told = |source: &str| {
                let error = sources[source]["error"].as_str().unwrap_or_default();
                error.contains(reason)
            };
            (told("scrape") && told("cache")).then_some(())
        });
        assert!(asked.shown.lock().unwrap().is_empty());
    }
}
