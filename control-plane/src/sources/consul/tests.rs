// SPDX-License-Identifier: Apache-2.0
//! The dialogue with a Consul that does as each test wants, on a free port.

use std::sync::Mutex;
use std::time::Duration;

use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use super::*;
use crate::config::{Question, Server, Token};

/// What a fake Consul says to a path and its query.
type Script = dyn Fn(&str, &str) -> Response + Send + Sync;

/// Ends with the test.
struct Fake {
    address: String,
    asked: Arc<Mutex<Vec<String>>>,
    server: JoinHandle<()>,
}

impl Drop for Fake {
    fn drop(&mut self) {
        self.server.abort();
    }
}

impl Fake {
    async fn new(script: impl Fn(&str, &str) -> Response + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (script, asked): (Arc<Script>, _) = (Arc::new(script), Arc::default());
        let log: Arc<Mutex<Vec<String>>> = Arc::clone(&asked);
        let app = axum::Router::new().fallback(async move |uri: Uri, headers: HeaderMap| {
            let token = headers
                .get("X-Consul-Token")
                .map(|token| token.to_str().unwrap());
            let token = token.map_or_else(String::new, |token| format!(" as {token}"));
            log.lock().unwrap().push(format!("{uri}{token}"));
            let response = script(uri.path(), uri.query().unwrap_or_default());
            match response.status() {
                // A hanging answer.
                StatusCode::IM_A_TEAPOT => std::future::pending().await,
                _ => response,
            }
        });
        let server = tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self {
            address: format!("http://{address}"),
            asked,
            server,
        }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn hang() -> Response {
    StatusCode::IM_A_TEAPOT.into_response()
}

fn answer(index: u64, body: impl Into<String>) -> Response {
    ([("X-Consul-Index", index.to_string())], body.into()).into_response()
}

/// A health answer with hosts of these ports.
fn hosts_at(ports: &[u16]) -> String {
    let entries = ports.iter().map(|port| {
        serde_json::json!({
            "Node": { "Node": "n", "Address": "127.0.0.1" },
            "Service": { "ID": port.to_string(), "Service": "rules", "Port": port },
        })
    });
    serde_json::Value::from_iter(entries).to_string()
}

fn settings(address: &str) -> Consul {
    Consul {
        server: Server {
            url: address.into(),
            ca: None,
            identity: None,
        },
        question: Question {
            service: "rules".into(),
            connect: false,
            datacenter: None,
            filter: None,
            tags: vec![],
            weight_millicores: 0,
        },
        wait: Duration::from_secs(3600),
        token: None,
    }
}

/// Waits little between questions and long for answers.
const FAST: Patience = Patience {
    answer: Duration::from_secs(60),
    between: Duration::ZERO,
    aimless: Duration::ZERO,
    first_retry: Duration::from_millis(1),
    last_retry: Duration::from_millis(2),
};

/// What is found, as a cluster's task tells it.
fn follow(consul: Consul, patience: Patience) -> (mpsc::Receiver<Answered>, JoinHandle<()>) {
    let client = Client::new(&consul, patience).unwrap();
    let (sender, news) = mpsc::channel(1);
    let asker = Asker {
        cluster: "c".into(),
        settings: Arc::new(consul),
        client,
        news: sender,
    };
    (news, tokio::spawn(asker.run()))
}

/// The next news of hosts: their ports, or what is wrong.
async fn next(news: &mut mpsc::Receiver<Answered>) -> Result<Vec<u16>, String> {
    match news.recv().await.unwrap().said {
        Said::Hosts(Ok(found)) if found.complaints.is_empty() => {
            let port =
                |host: crate::config::Host| host.address["127.0.0.1:".len()..].parse().unwrap();
            Ok(found.hosts.into_iter().map(port).collect())
        }
        Said::Hosts(Ok(found)) => Err(found.complaints.join("; ")),
        Said::Hosts(Err(error)) => Err(error.to_string()),
        Said::TrustDomain(said) => panic!("{said:?}"),
    }
}

/// Passes over what is said before that.
async fn until_says(
    news: &mut mpsc::Receiver<Answered>,
    what: &str,
    is: impl Fn(&Result<Vec<u16>, String>) -> bool,
) {
    let mut last = None;
    let says = async { while !is(last.insert(next(news).await)) {} };
    let says = tokio::time::timeout(Duration::from_secs(60), says).await;
    assert!(says.is_ok(), "waited in vain for {what}: {last:?}");
}

/// What is wrong with the first answer.
async fn wrong(script: impl Fn(&str, &str) -> Response + Send + Sync + 'static) -> String {
    let fake = Fake::new(script).await;
    let (mut news, task) = follow(settings(&fake.address), FAST);
    let said = next(&mut news).await;
    task.abort();
    said.unwrap_err()
}

#[tokio::test]
async fn each_question_waits_for_what_is_newer_than_the_last_answer() {
    let fake = Fake::new(|_, query| match query {
        "" => answer(7, hosts_at(&[1])),
        "index=7&wait=3600000ms" => answer(9, hosts_at(&[1, 2])),
        _ => hang(),
    })
    .await;
    let (mut news, _task) = follow(settings(&fake.address), FAST);
    assert_eq!(next(&mut news).await, Ok(vec![1]));
    assert_eq!(next(&mut news).await, Ok(vec![1, 2]));
}

#[tokio::test]
async fn an_index_that_goes_back_or_is_0_begins_anew() {
    let fake = Fake::new(|_, query| match query {
        "" => answer(7, hosts_at(&[1])),
        _ => answer(3, hosts_at(&[2])),
    })
    .await;
    let (mut news, _task) = follow(settings(&fake.address), FAST);
    for port in [1, 2, 1, 2] {
        assert_eq!(next(&mut news).await, Ok(vec![port]));
    }
    let fake = Fake::new(|_, query| match query {
        "" => answer(0, hosts_at(&[1])),
        _ => answer(1, hosts_at(&[2])),
    })
    .await;
    let (mut news, _task) = follow(settings(&fake.address), FAST);
    for _ in 0..3 {
        assert_eq!(next(&mut news).await, Ok(vec![1]));
    }
    assert_eq!(
        (
            following(5, 5),
            following(5, 6),
            following(5, 4),
            following(5, 0)
        ),
        (5, 6, 0, 0)
    );
}

#[tokio::test]
async fn an_answer_that_hangs_is_given_up_and_the_next_question_begins_anew() {
    let fake = Fake::new(|_, query| match query {
        "" => answer(7, hosts_at(&[1])),
        _ => hang(),
    })
    .await;
    let mut consul = settings(&fake.address);
    consul.wait = Duration::from_millis(16);
    let patience = Patience {
        answer: Duration::from_millis(200),
        ..FAST
    };
    let (mut news, _task) = follow(consul, patience);
    assert_eq!(next(&mut news).await, Ok(vec![1]));
    let late = next(&mut news).await.unwrap_err();
    assert_eq!(
        late, "timed_out: no complete answer within 217ms",
        "its wait, a sixteenth, and patience"
    );
    assert_eq!(next(&mut news).await, Ok(vec![1]), "asked without an index");
}

#[tokio::test]
async fn a_consul_that_comes_back_is_asked_again() {
    let fake = Fake::new(|_, _| answer(7, hosts_at(&[1]))).await;
    let address = fake.address.clone();
    drop(fake);
    let (mut news, _task) = follow(settings(&address), FAST);
    // The listener may live a moment longer than its task.
    let is = |said: &Result<_, String>| said.as_ref().is_err_and(|e| e.starts_with("refused: "));
    until_says(&mut news, "a refusal", is).await;
    let listener = TcpListener::bind(address.trim_start_matches("http://"))
        .await
        .unwrap();
    let app = axum::Router::new().fallback(async || answer(7, hosts_at(&[1])));
    let server = tokio::spawn(async move { axum::serve(listener, app).await });
    until_says(&mut news, "its host", |said| *said == Ok(vec![1])).await;
    server.abort();
}

#[tokio::test]
async fn the_question_has_everything_that_is_configured() {
    let fake = Fake::new(|_, _| answer(1, hosts_at(&[1]))).await;
    let mut consul = settings(&format!("{}/behind", fake.address));
    consul.question.service = "a service/x".into();
    consul.question.datacenter = Some("dc 2".into());
    consul.question.filter = Some("Service.Meta.zone == \"a\"".into());
    consul.token = Some(Token::read(b" secret\n").unwrap());
    assert!(!format!("{consul:?}").contains("secret"));
    let (mut news, _task) = follow(consul, FAST);
    let _ = news.recv().await;
    assert_eq!(
        fake.asked()[0],
        "/behind/v1/health/service/a%20service%2Fx?dc=dc%202&filter=Service.Meta.zone%20%3D%3D%20%22a%22 as secret"
    );
}

#[tokio::test]
async fn each_way_to_answer_wrong_is_told_from_the_others() {
    let denied = wrong(|_, _| (StatusCode::FORBIDDEN, "ACL not found\n").into_response()).await;
    assert_eq!(
        denied,
        "denied: 403: ACL not found: consul.token_file is not set; service:read and node:read are needed"
    );
    let failed =
        wrong(|_, _| (StatusCode::INTERNAL_SERVER_ERROR, "No cluster leader").into_response());
    assert_eq!(failed.await, "bad_status: 500: No cluster leader");
    let moved = wrong(|_, _| (StatusCode::FOUND, [("Location", "/elsewhere")]).into_response());
    assert_eq!(moved.await, "bad_status: 302", "redirects are not followed");
    let other = wrong(|_, _| "[]".into_response()).await;
    assert_eq!(
        other,
        "bad_body: no X-Consul-Index: what consul.address names is not Consul's API"
    );
    let page = wrong(|_, _| answer(1, "<html>")).await;
    assert!(
        page.starts_with("bad_body: not a list of instances in JSON"),
        "{page}"
    );
    let large = wrong(|_, _| answer(1, " ".repeat((64 << 20) + 1))).await;
    assert!(large.ends_with("the limit is 64MiB"), "{large}");
}

#[tokio::test]
async fn an_empty_answer_says_what_it_may_mean() {
    let unknown = wrong(|_, _| answer(1, "[]")).await;
    assert!(
        unknown.starts_with("Consul names no instance of \"rules\" (Consul does not tell"),
        "{unknown}"
    );
    let filtered = wrong(|_, _| {
        let headers = [
            ("X-Consul-Index", "1"),
            ("X-Consul-Results-Filtered-By-ACLs", "true"),
        ];
        (headers, "[]").into_response()
    });
    let filtered = filtered.await;
    assert!(
        filtered.starts_with("the token of consul.token_file may not read"),
        "{filtered}"
    );
    let fake = Fake::new(|path, _| match path {
        "/v1/catalog/service/rules" => answer(1, "[{},{}]"),
        "/v1/health/connect/rules" => answer(1, "[]"),
        _ => hang(),
    })
    .await;
    let mut consul = settings(&fake.address);
    consul.question.connect = true;
    let (mut news, _task) = follow(consul, FAST);
    let proxyless = next(&mut news).await.unwrap_err();
    assert!(
        proxyless.starts_with(
            "Consul knows 2 instances of \"rules\" and no Connect proxy of one: register each"
        ),
        "{proxyless}"
    );
}

#[tokio::test]
async fn the_trust_domain_is_watched_with_connect() {
    let fake = Fake::new(|path, query| match (path, query) {
        ("/v1/connect/ca/roots", "") => answer(4, "{\"TrustDomain\":\"a.consul\",\"Roots\":[]}"),
        ("/v1/connect/ca/roots", "index=4&wait=3600000ms") => {
            answer(5, "{\"TrustDomain\":\"b.consul\"}")
        }
        _ => hang(),
    })
    .await;
    let mut consul = settings(&fake.address);
    consul.question.connect = true;
    let (mut news, _task) = follow(consul, FAST);
    for expected in ["a.consul", "b.consul"] {
        match news.recv().await.unwrap().said {
            Said::TrustDomain(Ok(name)) => assert_eq!(name, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn retries_come_at_growing_intervals_up_to_a_limit() {
    let patience = Patience::default();
    let ms = |failures| patience.longest_retry(failures).as_millis();
    assert_eq!(
        [1, 2, 3, 7, 8, 100].map(ms),
        [100, 200, 400, 6400, 10_000, 10_000]
    );
}
