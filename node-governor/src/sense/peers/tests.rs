// SPDX-License-Identifier: Apache-2.0
use std::sync::Mutex;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;

use super::*;
use crate::sense::certificates::{Authority, Pair};

fn peer(url: String) -> Peer {
    Peer {
        node: "four".into(),
        url,
        jobs: vec!["ferret".into(), "dedup".into()],
    }
}

fn page(states: [&str; 2]) -> String {
    let [ferret, dedup] = states;
    format!(
        r#"{{"cores":[],"shares":{{"moves":3,"jobs":[{{"name":"dedup","state":"{dedup}"}},{{"name":"x","state":"?"}},{{"name":"ferret","state":"{ferret}"}}]}}}}"#
    )
}

#[test]
fn a_page_tells_of_every_job_or_of_none() {
    let peers = Peers::new(&[peer(String::new())]);
    let hear = |page: &str| peers.0[0].hear(page).map_err(|error| format!("{error:#}"));
    let ended = || peers.ended().collect::<Vec<_>>();
    assert_eq!(ended(), [None, None]);
    hear(&page(["running", "waiting"])).unwrap();
    assert_eq!(ended(), [Some(false), Some(false)]);
    hear(&page(["failed", "paused"])).unwrap();
    assert_eq!(ended(), [Some(true), Some(false)]);
    for (page, reason) in [
        ("<html>".to_owned(), "no /state of a governor"),
        (r#"{"shares":null}"#.into(), "it has no job \"ferret\""),
        (page(["finished", "done"]), "dedup: no such state"),
    ] {
        let told = hear(&page).unwrap_err();
        assert!(told.starts_with(reason), "{told}");
        assert_eq!(ended(), [Some(true), Some(false)], "{page}");
    }
    // Forgotten there, it is waited for again.
    hear(&page(["waiting", "finished"])).unwrap();
    assert_eq!(ended(), [Some(false), Some(true)]);
}

/// What a governor says to everybody; none: nothing at all.
type Says = Arc<Mutex<Option<String>>>;

/// Answers over TLS, or where there is none in plain text.
async fn governor(says: Says, tls: Option<TlsAcceptor>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let says = Arc::clone(&says);
            match tls.clone() {
                None => tokio::spawn(answer(stream, says)),
                Some(tls) => tokio::spawn(async move {
                    if let Ok(stream) = tls.accept(stream).await {
                        answer(stream, says).await;
                    }
                }),
            };
        }
    });
    port
}

async fn answer(mut stream: impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin, says: Says) {
    let mut request = [0; 1024];
    let read = stream.read(&mut request).await.unwrap_or_default();
    assert!(request[..read].starts_with(b"GET /state HTTP/1.1\r\n"));
    let said = says.lock().unwrap().clone();
    let Some(body) = said else {
        return std::future::pending().await;
    };
    let answer = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    // Whoever asked may have gone.
    let _ = stream.write_all(answer.as_bytes()).await;
    let _ = stream.shutdown().await;
}

async fn wait(what: &str, is: impl Fn() -> bool) {
    for _ in 0..3000 {
        if is() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("waited for {what}");
}

fn answers(peers: &Peers) -> bool {
    peers.book().all(|peer| peer.answers)
}

#[tokio::test]
async fn a_governor_that_is_silent_takes_back_no_end() {
    let says: Says = Arc::default();
    let port = governor(Arc::clone(&says), None).await;
    let peers = Peers::new(&[peer(format!("http://127.0.0.1:{port}"))]);
    let asking = tokio::spawn(peers.clone().ask(Trust::default()));
    let ended = || peers.ended().collect::<Vec<_>>();
    *says.lock().unwrap() = Some(page(["finished", "running"]));
    wait("an answer", || answers(&peers)).await;
    assert_eq!(ended(), [Some(true), Some(false)]);
    *says.lock().unwrap() = None;
    wait("silence", || !answers(&peers)).await;
    assert_eq!(ended(), [Some(true), Some(false)]);
    *says.lock().unwrap() = Some(page(["finished", "failed"]));
    wait("the other job", || ended() == [Some(true), Some(true)]).await;
    asking.abort();
}

fn acceptor(pair: &Pair) -> TlsAcceptor {
    let certificate = certificates(pair.certificate.as_bytes()).unwrap();
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(certificate, key)
        .unwrap();
    TlsAcceptor::from(Arc::new(config))
}

#[tokio::test]
async fn over_https_only_who_is_vouched_for_is_believed() {
    let (ours, others) = (Authority::new(), Authority::new());
    let says: Says = Arc::new(Mutex::new(Some(page(["finished", "finished"]))));
    let ask = async |authority: &Authority, name: &str| {
        let acceptor = acceptor(&authority.sign(name));
        let port = governor(Arc::clone(&says), Some(acceptor)).await;
        let trust = Trust {
            authority: Some(ours.certificate.clone().into_bytes()),
            ..Trust::default()
        };
        state(
            &format!("https://localhost:{port}"),
            &connector(&trust).unwrap(),
        )
        .await
    };
    assert!(ask(&ours, "localhost").await.unwrap().contains("ferret"));
    for (authority, name) in [(&others, "localhost"), (&ours, "elsewhere")] {
        let error = format!("{:#}", ask(authority, name).await.unwrap_err());
        assert!(error.contains("invalid peer certificate"), "{error}");
    }
}

#[tokio::test]
async fn a_certificate_that_was_renewed_is_read_again() {
    let (ours, others) = (Authority::new(), Authority::new());
    let says: Says = Arc::new(Mutex::new(Some(page(["finished", "running"]))));
    let port = governor(says, Some(acceptor(&ours.sign("localhost")))).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    let trust = Trust {
        authority: Some(others.certificate.into_bytes()),
        files: [Some(file.path().to_owned()), None, None],
        ..Trust::default()
    };
    let peers = Peers::new(&[peer(format!("https://localhost:{port}"))]);
    let asking = tokio::spawn(peers.clone().ask(trust));
    // Half-written, it stays as it was.
    std::fs::write(file.path(), "-----BEGIN").unwrap();
    tokio::time::sleep(3 * EVERY).await;
    assert!(!answers(&peers));
    std::fs::write(file.path(), ours.certificate).unwrap();
    wait("an answer", || answers(&peers)).await;
    asking.abort();
}
