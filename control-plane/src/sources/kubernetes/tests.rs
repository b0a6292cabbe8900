// SPDX-License-Identifier: Apache-2.0
//! The dialogue with an API server that does as each test wants, on a free port.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use axum::body::Body;
use axum::extract::Query;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use weir_fleet::poll::Fault;

use super::*;
use crate::config::{Access, ApiServer, Backend, Bearer, Server, ServicePort};

/// What the server does with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Answer,
    /// With this status.
    Fail(u16),
    /// Takes questions and says nothing, to watches neither.
    Hang,
    /// Lets nobody watch.
    Deny,
    /// Ends each watch at once.
    End,
    /// Says after each page that there is another one.
    Repeat,
    /// Begins watches, and breaks off.
    Cut,
    /// Breaks off watches as soon as it has told something, and lists no more.
    LastWords,
}

#[derive(Clone)]
struct World {
    slices: BTreeMap<String, Value>,
    version: u64,
    /// What has happened, by the version that it made.
    events: Vec<(u64, Value)>,
    /// Older versions are forgotten, and whoever names one is told so in a status or in an event.
    oldest: u64,
    tells_by_event: bool,
    does: Does,
    /// Whom it answers.
    token: &'static str,
    /// Queries of lists and watches.
    lists: Vec<String>,
    watches: Vec<String>,
}

#[derive(Clone)]
struct Fake {
    address: SocketAddr,
    world: Arc<watch::Sender<World>>,
}

impl Fake {
    async fn start() -> Self {
        let world = World {
            slices: BTreeMap::new(),
            version: 100,
            events: Vec::new(),
            oldest: 0,
            tells_by_event: false,
            does: Does::Answer,
            token: "one",
            lists: Vec::new(),
            watches: Vec::new(),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let world = Arc::new(watch::channel(world).0);
        let shared = world.clone();
        let app = axum::Router::new().fallback(
            async move |uri: Uri, query: Query<BTreeMap<String, String>>, headers: HeaderMap| {
                answer(&uri, &query, &headers, &shared).await
            },
        );
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        Self { address, world }
    }

    fn change(&self, change: impl FnOnce(&mut World)) {
        self.world.send_modify(change);
    }

    /// A slice with one pod, whose conditions these are.
    fn put(&self, number: usize, conditions: Value) {
        self.change(|world| {
            world.version += 1;
            let is_new = !world.slices.contains_key(&format!("s{number:03}"));
            let kind = if is_new { "ADDED" } else { "MODIFIED" };
            let mut slice = slice(number, conditions);
            slice["metadata"]["resourceVersion"] = json!(world.version.to_string());
            world
                .events
                .push((world.version, json!({ "type": kind, "object": slice })));
            world.slices.insert(format!("s{number:03}"), slice);
        });
    }

    fn remove(&self, number: usize) {
        self.change(|world| {
            world.version += 1;
            let mut slice = world.slices.remove(&format!("s{number:03}")).unwrap();
            slice["metadata"]["resourceVersion"] = json!(world.version.to_string());
            let event = json!({ "type": "DELETED", "object": slice });
            world.events.push((world.version, event));
        });
    }

    fn lists(&self) -> usize {
        self.world.borrow().lists.len()
    }

    fn settings(&self) -> Kubernetes {
        Kubernetes {
            namespace: "shop".into(),
            backend: Backend::Service("rules".into(), ServicePort::Named("http".into())),
            metrics_port: None,
            access: Access::Written(ApiServer {
                server: Server {
                    url: format!("http://{}", self.address),
                    ca: None,
                    identity: None,
                },
                bearer: Some(Bearer::Token(crate::config::Token::read(b"one").unwrap())),
            }),
        }
    }

    fn asked(&self) -> Asked {
        Asked::with(self.settings(), PATIENCE)
    }
}

fn slice(number: usize, conditions: Value) -> Value {
    json!({
        "metadata": { "name": format!("s{number:03}"), "resourceVersion": "1" },
        "addressType": "IPv4",
        "ports": [ { "name": "http", "port": 8080, "protocol": "TCP" } ],
        "endpoints": [ {
            "addresses": [ format!("10.0.{}.{}", number / 256, number % 256) ],
            "conditions": conditions,
            "targetRef": { "kind": "Pod", "name": format!("rules-{number}"), "uid": number.to_string() },
        } ],
    })
}

fn ready() -> Value {
    json!({ "ready": true, "serving": true, "terminating": false })
}

fn terminating() -> Value {
    json!({ "ready": false, "serving": true, "terminating": true })
}

fn status(code: u16, message: &str) -> Response {
    let body = json!({ "kind": "Status", "code": code, "message": message });
    (StatusCode::from_u16(code).unwrap(), axum::Json(body)).into_response()
}

async fn answer(
    uri: &Uri,
    query: &BTreeMap<String, String>,
    headers: &HeaderMap,
    world: &Arc<watch::Sender<World>>,
) -> Response {
    let path = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
    assert_eq!(uri.path(), path);
    assert_eq!(query["labelSelector"], "kubernetes.io/service-name=rules");
    let text = uri.query().unwrap_or_default().to_owned();
    let watches = query.contains_key("watch");
    world.send_modify(|world| match watches {
        true => world.watches.push(text),
        false => world.lists.push(text),
    });
    let now = world.borrow().clone();
    let shown = headers.get("authorization").map(|value| value.as_bytes());
    if shown != Some(format!("Bearer {}", now.token).as_bytes()) {
        return status(401, "Unauthorized");
    }
    match now.does {
        Does::Fail(code) => return status(code, "etcdserver: request timed out"),
        Does::Hang => std::future::pending().await,
        Does::LastWords if !watches => return status(500, "etcdserver: request timed out"),
        Does::Deny if watches => return status(403, "endpointslices is forbidden"),
        _ => {}
    }
    match watches {
        true => watched(query, now, world.subscribe()),
        false => list(query, &now),
    }
}

/// A page; `continue` is how many came before.
fn list(query: &BTreeMap<String, String>, world: &World) -> Response {
    let before: usize = query["continue"].parse().unwrap_or(0);
    let limit: usize = query["limit"].parse().unwrap();
    let items: Vec<&Value> = world.slices.values().skip(before).take(limit).collect();
    let next = match before + limit < world.slices.len() || world.does == Does::Repeat {
        true => (before + limit).to_string(),
        false => String::new(),
    };
    let metadata = json!({ "resourceVersion": world.version.to_string(), "continue": next });
    axum::Json(json!({ "metadata": metadata, "items": items })).into_response()
}

fn watched(
    query: &BTreeMap<String, String>,
    now: World,
    mut world: watch::Receiver<World>,
) -> Response {
    let mut from: u64 = query["resourceVersion"].parse().unwrap();
    let lasts = Duration::from_secs(query["timeoutSeconds"].parse().unwrap());
    assert_eq!(query["allowWatchBookmarks"], "true");
    let expired = json!({ "type": "ERROR", "object": { "code": 410, "message": "too old" } });
    if from < now.oldest && !now.tells_by_event {
        return status(410, "too old resource version");
    }
    let (sender, lines) = mpsc::channel(16);
    let line = |value: &Value| Ok(Bytes::from(format!("{value}\n")));
    tokio::spawn(async move {
        let ends = Instant::now() + lasts;
        loop {
            let now = world.borrow_and_update().clone();
            match now.does {
                Does::End => return,
                Does::Hang => std::future::pending().await,
                Does::Cut => {
                    let _gone = sender.send(Err(io::Error::other("cut"))).await;
                    return;
                }
                _ => {}
            }
            if from < now.oldest {
                let _gone = sender.send(line(&expired)).await;
                return;
            }
            let known = from;
            for (version, event) in now.events.iter().filter(|(version, _)| *version > known) {
                if sender.send(line(event)).await.is_err() {
                    return;
                }
                from = *version;
            }
            if now.does == Does::LastWords && from > known {
                // Else the connection may be gone before they are on it.
                tokio::time::sleep(ms(100)).await;
                let _gone = sender.send(Err(io::Error::other("cut"))).await;
                return;
            }
            match tokio::time::timeout_at(ends, world.changed()).await {
                Ok(Ok(())) => {}
                _ => break,
            }
        }
        // Others' objects have come so far.
        let version = (from + 1000).to_string();
        let metadata = json!({ "resourceVersion": version });
        let object = json!({ "metadata": metadata, "endpoints": null, "addressType": "" });
        let _gone = sender
            .send(line(&json!({ "type": "BOOKMARK", "object": object })))
            .await;
    });
    Body::from_stream(ReceiverStream::<io::Result<Bytes>>::new(lines)).into_response()
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

const PATIENCE: Patience = Patience {
    answer: ms(500),
    between: ms(1),
    aimless: ms(10),
    first_retry: ms(1),
    last_retry: ms(20),
};

/// A task that asks, and what it hears.
struct Asked {
    news: mpsc::Receiver<Answered>,
}

impl Asked {
    fn with(settings: Kubernetes, patience: Patience) -> Self {
        let (sender, news) = mpsc::channel(1);
        let asker = Asker {
            cluster: "c".into(),
            settings: Arc::new(settings),
            news: sender,
            patience,
            watch: Duration::from_secs(1),
        };
        tokio::spawn(asker.run());
        Self { news }
    }

    async fn next(&mut self) -> Result<Found, PollError> {
        let news = timeout(Duration::from_secs(20), self.news.recv()).await;
        match news.unwrap().unwrap().said {
            Said::Hosts(said) => said,
            Said::TrustDomain(_) => panic!("it has none"),
        }
    }

    /// What is heard until there are so many hosts.
    async fn until(&mut self, hosts: usize) -> Found {
        loop {
            if let Ok(found) = self.next().await
                && found.hosts.len() == hosts
            {
                return found;
            }
        }
    }

    async fn error(&mut self) -> PollError {
        loop {
            if let Err(error) = self.next().await {
                return error;
            }
        }
    }
}

#[tokio::test]
async fn a_service_is_listed_in_pages_and_then_watched() {
    let fake = Fake::start().await;
    (0..250).for_each(|number| fake.put(number, ready()));
    let mut asked = fake.asked();
    let found = asked.until(250).await;
    assert_eq!(found.complaints, [""; 0]);
    assert_eq!(fake.lists(), 3);
    assert!(fake.world.borrow().lists[2].ends_with("&limit=100&continue=200"));
    fake.put(250, ready());
    asked.until(251).await;
    fake.put(7, terminating());
    loop {
        let found = asked.until(251).await;
        let is = |host: &&crate::config::Host| host.address == "10.0.0.7:8080";
        if found.hosts.iter().find(is).unwrap().draining {
            break;
        }
    }
    fake.remove(7);
    asked.until(250).await;
    assert_eq!(fake.lists(), 3, "what is watched is not listed");
}

#[tokio::test]
async fn a_watch_that_has_ended_goes_on_from_the_last_mark() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    let mut asked = fake.asked();
    asked.until(1).await;
    // It is told again what is known, so that it is of now.
    asked.until(1).await;
    fake.change(|world| world.version = 2000);
    fake.put(2, ready());
    asked.until(2).await;
    let world = fake.world.borrow();
    assert_eq!(world.lists.len(), 1);
    assert!(world.watches[0].contains("&resourceVersion=101&"));
    assert!(world.watches[1].contains("&resourceVersion=1101&"));
}

#[tokio::test]
async fn a_version_that_is_forgotten_is_no_failure_and_all_are_listed_again() {
    for by_event in [false, true] {
        let fake = Fake::start().await;
        fake.put(1, ready());
        let mut asked = fake.asked();
        asked.until(1).await;
        fake.change(|world| {
            // It was deleted, and nobody knows any more.
            world.slices.clear();
            world.events.clear();
            (world.version, world.oldest) = (5000, 5000);
            world.tells_by_event = by_event;
        });
        fake.put(2, ready());
        let found = loop {
            let found = asked.next().await.unwrap();
            if found.hosts[0].address == "10.0.0.2:8080" {
                break found;
            }
        };
        assert_eq!(found.hosts.len(), 1);
        assert_eq!(fake.lists(), 2, "{by_event}");
    }
}

#[tokio::test]
async fn a_server_that_forgets_at_once_is_not_asked_in_a_hurry() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    fake.change(|world| world.oldest = 9000);
    let patience = Patience {
        aimless: ms(50),
        ..PATIENCE
    };
    let mut asked = Asked::with(fake.settings(), patience);
    let began = Instant::now();
    while began.elapsed() < ms(400) {
        asked.next().await.unwrap();
    }
    assert!(fake.lists() <= 10, "{}", fake.lists());
}

#[tokio::test]
async fn an_answer_that_is_an_error_is_told_in_the_servers_words_until_there_is_a_better_one() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    let mut asked = fake.asked();
    asked.until(1).await;
    fake.change(|world| world.does = Does::Fail(500));
    let error = asked.error().await;
    assert_eq!(error.fault, Fault::BadStatus);
    assert_eq!(error.detail, "500: etcdserver: request timed out");
    fake.change(|world| world.does = Does::Answer);
    fake.put(2, ready());
    asked.until(2).await;
}

#[tokio::test]
async fn a_server_that_says_nothing_is_not_waited_for() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    fake.change(|world| world.does = Does::Hang);
    let mut asked = fake.asked();
    assert_eq!(asked.error().await.fault, Fault::TimedOut);
    fake.change(|world| world.does = Does::Answer);
    asked.until(1).await;
    // The watch is open.
    fake.put(2, ready());
    asked.until(2).await;
    fake.change(|world| world.does = Does::Hang);
    let began = Instant::now();
    assert_eq!(asked.error().await.fault, Fault::TimedOut);
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[tokio::test]
async fn after_a_connection_that_was_cut_all_are_listed_again() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    let mut asked = fake.asked();
    asked.until(1).await;
    fake.change(|world| world.does = Does::Cut);
    asked.error().await;
    fake.put(2, ready());
    fake.change(|world| world.does = Does::Answer);
    asked.until(2).await;
    assert!(fake.lists() >= 2);
}

/// It may be long until there is more.
#[tokio::test]
async fn what_was_told_just_before_a_connection_was_cut_counts() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    let patience = Patience {
        between: ms(400),
        ..PATIENCE
    };
    let mut asked = Asked::with(fake.settings(), patience);
    asked.until(1).await;
    fake.change(|world| world.does = Does::LastWords);
    fake.put(2, ready());
    asked.until(2).await;
}

#[tokio::test]
async fn a_token_that_is_replaced_counts_at_the_next_question() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "one\n").unwrap();
    let mut settings = fake.settings();
    if let Access::Written(api) = &mut settings.access {
        api.bearer = Some(Bearer::File(file.clone()));
    }
    let mut asked = Asked::with(settings, PATIENCE);
    asked.until(1).await;
    fake.change(|world| world.token = "two");
    let error = asked.error().await;
    assert_eq!(error.fault, Fault::Denied);
    let said = "401: Unauthorized: the token is unknown or has run out";
    assert_eq!(error.detail, said);
    std::fs::write(&file, "two").unwrap();
    asked.until(1).await;
    std::fs::remove_file(&file).unwrap();
    let error = asked.error().await;
    assert!(error.detail.starts_with("token file "), "{error}");
}

#[tokio::test]
async fn who_may_list_and_not_watch_is_told_so_and_does_not_ask_in_a_hurry() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    fake.change(|world| world.does = Does::Deny);
    let patience = Patience {
        aimless: ms(50),
        ..PATIENCE
    };
    let mut asked = Asked::with(fake.settings(), patience);
    let began = Instant::now();
    while began.elapsed() < ms(400) {
        let error = asked.error().await;
        assert_eq!(error.fault, Fault::Denied);
        let said = "403: endpointslices is forbidden: a Role with get, list and watch of endpointslices in \
                    discovery.k8s.io is needed";
        assert_eq!(error.detail, said);
    }
    assert!(fake.lists() <= 10, "{}", fake.lists());
}

#[tokio::test]
async fn watches_that_end_at_once_are_begun_at_a_pace() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    fake.change(|world| world.does = Does::End);
    let patience = Patience {
        aimless: ms(50),
        ..PATIENCE
    };
    let mut asked = Asked::with(fake.settings(), patience);
    let began = Instant::now();
    while began.elapsed() < ms(400) {
        asked.next().await.unwrap();
    }
    let watches = fake.world.borrow().watches.len();
    assert!((2..=10).contains(&watches), "{watches}");
    assert_eq!(fake.lists(), 1);
}

#[tokio::test]
async fn changes_that_come_together_are_told_together() {
    let fake = Fake::start().await;
    fake.put(0, ready());
    let patience = Patience {
        between: ms(100),
        ..PATIENCE
    };
    let mut asked = Asked::with(fake.settings(), patience);
    asked.until(1).await;
    (1..500).for_each(|number| fake.put(number, ready()));
    let mut told = 1;
    while asked.next().await.unwrap().hosts.len() < 500 {
        told += 1;
    }
    assert!(told <= 20, "{told}");
}

#[tokio::test]
async fn a_list_without_an_end_is_given_up() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    fake.change(|world| world.does = Does::Repeat);
    let error = hosts(&fake.settings()).await.unwrap_err();
    assert_eq!(error.fault, Fault::TooLarge);
    assert_eq!(fake.lists(), 1000);
}

#[tokio::test]
async fn a_probe_lists_once_and_sees_whether_it_may_watch() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    let found = hosts(&fake.settings()).await.unwrap();
    assert_eq!(found.hosts.len(), 1);
    assert_eq!((fake.lists(), fake.world.borrow().watches.len()), (1, 1));
    fake.change(|world| world.does = Does::Deny);
    let error = hosts(&fake.settings()).await.unwrap_err();
    assert_eq!(error.fault, Fault::Denied);
}

#[tokio::test]
async fn nobody_listens_and_nobody_is_asked_any_more() {
    let fake = Fake::start().await;
    fake.put(1, ready());
    let (sender, mut news) = mpsc::channel(1);
    let task = tokio::spawn(run("c".into(), Arc::new(fake.settings()), sender));
    let heard = news.recv().await.unwrap();
    assert!(matches!(heard.said, Said::Hosts(Ok(found)) if found.hosts.len() == 1));
    drop(news);
    fake.put(2, ready());
    timeout(Duration::from_secs(20), task)
        .await
        .unwrap()
        .unwrap();
}

#[tokio::test]
async fn a_server_of_another_authority_is_shown_no_token() {
    use rustls::pki_types::PrivateKeyDer;
    let own = || rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let (theirs, trusted) = (own(), own());
    let key = PrivateKeyDer::try_from(theirs.signing_key.serialize_der()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![theirs.cert.der().clone()], key);
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config.unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let met = tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        acceptor.accept(stream).await.map(drop)
    });
    let mut settings = Fake::start().await.settings();
    if let Access::Written(api) = &mut settings.access {
        api.server.url = format!("https://{address}");
        api.server.ca = Some(trusted.cert.pem().into_bytes());
    }
    let error = hosts(&settings).await.unwrap_err();
    assert_eq!(error.fault, Fault::Failed);
    assert!(error.detail.contains("certificate"), "{error}");
    assert!(met.await.unwrap().is_err(), "nothing is said by TLS");
}
