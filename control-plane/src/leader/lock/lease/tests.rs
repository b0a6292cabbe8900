// SPDX-License-Identifier: Apache-2.0
//! The dialogue with an API server that does as each test wants, on a free port.

use std::net::SocketAddr;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::config::{ApiServer, Bearer, Server, Token};
use crate::leader::lock::Holder;

/// What the server does with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Does {
    Answer,
    Fail(u16),
    /// It takes the question and says nothing.
    Hang,
    Garbage,
    /// Writes what it is told, and says nothing.
    Swallow,
    /// Somebody else writes before each write.
    Overtake,
}

struct World {
    lease: Option<Value>,
    version: u64,
    does: Does,
    writes: usize,
}

#[derive(Clone)]
struct Fake {
    address: SocketAddr,
    world: Arc<Mutex<World>>,
}

fn status(code: u16, message: &str) -> Response {
    let body = json!({ "kind": "Status", "code": code, "message": message });
    (StatusCode::from_u16(code).unwrap(), axum::Json(body)).into_response()
}

impl World {
    fn store(&mut self, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(object.clone());
        object
    }

    /// As the API server: no write over another version.
    fn write(&mut self, method: &str, object: Value) -> Response {
        self.writes += 1;
        if self.does == Does::Overtake
            && let Some(mut lease) = self.lease.clone()
        {
            lease["spec"]["renewTime"] = json!(format!("{}", self.version));
            self.store(lease);
        }
        let there = self.lease.as_ref();
        match (method, there) {
            ("POST", Some(_)) => status(409, "already exists"),
            ("PUT", None) => status(404, "not found"),
            ("PUT", Some(old))
                if old["metadata"]["resourceVersion"] != object["metadata"]["resourceVersion"] =>
            {
                status(409, "the object has been modified")
            }
            _ => axum::Json(self.store(object)).into_response(),
        }
    }
}

impl Fake {
    async fn start() -> Self {
        let world = Arc::new(Mutex::new(World {
            lease: None,
            version: 100,
            does: Does::Answer,
            writes: 0,
        }));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let fake = Self { address, world };
        let shared = fake.clone();
        let app = axum::Router::new().fallback(async move |request: Request| {
            let shared = shared.clone();
            shared.answer(request).await
        });
        tokio::spawn(async move { axum::serve(listener, app).await.unwrap() });
        fake
    }

    async fn answer(&self, request: Request) -> Response {
        let (head, body) = request.into_parts();
        let all = "/apis/coordination.k8s.io/v1/namespaces/weir-system/leases";
        let one = format!("{all}/weir-control");
        let method = head.method.as_str();
        assert_eq!(head.uri.path(), if method == "POST" { all } else { &one });
        assert_eq!(head.headers["authorization"], "Bearer one");
        let does = self.world.lock().unwrap().does;
        let body = axum::body::to_bytes(body, MAX_BYTES).await.unwrap();
        match does {
            Does::Fail(code) => return status(code, "it does not"),
            Does::Garbage => return "<html>a captive portal</html>".into_response(),
            Does::Hang => return std::future::pending().await,
            _ => {}
        }
        if method == "GET" {
            let lease = self.world.lock().unwrap().lease.clone();
            return match lease {
                Some(lease) => axum::Json(lease).into_response(),
                None => status(404, "leases.coordination.k8s.io \"weir-control\" not found"),
            };
        }
        assert_eq!(head.headers["content-type"], "application/json");
        let object = serde_json::from_slice(&body).unwrap();
        let answer = self.world.lock().unwrap().write(method, object);
        match does {
            Does::Swallow => status(504, "the answer was lost"),
            _ => answer,
        }
    }

    fn does(&self, does: Does) {
        self.world.lock().unwrap().does = does;
    }

    fn spec(&self) -> Value {
        let world = self.world.lock().unwrap();
        world
            .lease
            .as_ref()
            .map_or(Value::Null, |it| it["spec"].clone())
    }

    fn replica(&self, name: &str) -> Lease {
        let server = Server {
            url: format!("http://{}", self.address),
            ca: None,
            identity: None,
        };
        let bearer = Some(Bearer::Token(Token::read(b"one").unwrap()));
        let settings = Settings {
            namespace: "weir-system".to_owned(),
            name: "weir-control".to_owned(),
            duration: Duration::from_secs(15),
            access: Access::Written(ApiServer { server, bearer }),
        };
        Lease::new(&settings, name, &format!("{name}:1"))
    }
}

async fn look(lease: &Lease) -> Key {
    lease.read(0).await.unwrap().key
}

async fn holder(lease: &Lease) -> Holder {
    match look(lease).await {
        Key::Held(holder) => holder,
        key => panic!("{key:?}"),
    }
}

#[tokio::test]
async fn the_first_takes_it_the_second_sees_whose_it_is_and_gets_it_when_it_is_given_up() {
    let fake = Fake::start().await;
    let (one, two) = (fake.replica("one"), fake.replica("two"));
    let (first, second) = (one.open(), two.open());
    assert_eq!(look(&one).await, Key::Free);
    assert_eq!(look(&two).await, Key::Free);
    assert!(one.acquire(&first).await.unwrap());
    assert!(!two.acquire(&second).await.unwrap(), "409");
    let spec = fake.spec();
    assert_eq!(spec["holderIdentity"], format!("one one:1 {first}"));
    assert_eq!(spec["leaseDurationSeconds"], 15);
    assert_eq!(spec["leaseTransitions"], 1);
    let time = spec["acquireTime"].as_str().unwrap();
    assert!(time.ends_with('Z') && time.len() == "2006-01-02T15:04:05.000000Z".len());
    assert_eq!(spec["renewTime"], time);
    for (lease, own) in [(&one, true), (&two, false)] {
        let holder = holder(lease).await;
        assert_eq!(
            (&*holder.name, &*holder.address, holder.index),
            ("one", "one:1", 1)
        );
        assert_eq!(lease.lapses_at().is_some(), own);
    }
    assert!(one.renew(&first).await.unwrap());
    assert_ne!(fake.spec()["renewTime"], time);
    one.release(&first).await.unwrap();
    assert_eq!(fake.spec()["holderIdentity"], Value::Null);
    assert!(!one.renew(&first).await.unwrap());
    assert_eq!(look(&two).await, Key::Free);
    assert!(two.acquire(&second).await.unwrap());
    assert_eq!(holder(&one).await.index, 2);
}

#[tokio::test]
async fn a_leader_that_was_deposed_or_whose_lease_was_deleted_learns_it_by_renewing() {
    let fake = Fake::start().await;
    let (one, two) = (fake.replica("one"), fake.replica("two"));
    let (first, second) = (one.open(), two.open());
    look(&one).await;
    assert!(one.acquire(&first).await.unwrap());
    holder(&two).await;
    two.release(&first).await.unwrap();
    assert!(two.acquire(&second).await.unwrap());
    assert!(!one.renew(&first).await.unwrap());
    assert_eq!(holder(&one).await.name, "two");
    fake.world.lock().unwrap().lease = None;
    assert!(!two.renew(&second).await.unwrap());
    assert_eq!(look(&two).await, Key::Free);
    assert!(two.acquire(&second).await.unwrap());
    assert_eq!(holder(&two).await.index, 3, "goes on from what it has seen");
}

#[tokio::test]
async fn somebody_who_writes_a_label_does_not_end_the_lead_and_one_who_always_does_is_named() {
    let fake = Fake::start().await;
    let one = fake.replica("one");
    let session = one.open();
    look(&one).await;
    assert!(one.acquire(&session).await.unwrap());
    {
        let mut world = fake.world.lock().unwrap();
        let mut lease = world.lease.clone().unwrap();
        lease["metadata"]["labels"] = json!({ "theirs": "stays" });
        world.store(lease);
    }
    assert!(one.renew(&session).await.unwrap());
    let labels = |fake: &Fake| fake.world.lock().unwrap().lease.clone().unwrap();
    assert_eq!(labels(&fake)["metadata"]["labels"]["theirs"], "stays");
    fake.does(Does::Overtake);
    let error = one.renew(&session).await.unwrap_err();
    assert!(error.detail.contains("others write the Lease"), "{error}");
}

#[tokio::test]
async fn what_fails_is_an_error_and_changes_nothing() {
    let fake = Fake::start().await;
    let one = fake.replica("one");
    let session = one.open();
    look(&one).await;
    assert!(one.acquire(&session).await.unwrap());
    let lapses = one.lapses_at();
    let cases = [
        (
            Does::Fail(403),
            "403: it does not: a Role with get, create and update of the Lease weir-control in namespace weir-system",
        ),
        (Does::Fail(401), "401: it does not: the token is unknown"),
        (Does::Fail(410), "410: it does not"),
        (Does::Fail(500), "500: it does not"),
        (Does::Garbage, "expected value"),
    ];
    for (does, expected) in cases {
        fake.does(does);
        for error in [
            one.renew(&session).await.unwrap_err(),
            one.read(0).await.unwrap_err(),
        ] {
            assert!(error.to_string().contains(expected), "{does:?}: {error}");
            let denied = matches!(does, Does::Fail(401 | 403));
            assert_eq!(error.fault == Fault::Denied, denied);
        }
        assert_eq!(one.lapses_at(), lapses, "it was not renewed");
    }
    fake.does(Does::Answer);
    assert_eq!(holder(&one).await.name, "one");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_says_nothing_is_waited_for_only_so_long() {
    let fake = Fake::start().await;
    let one = fake.replica("one");
    one.open();
    fake.does(Does::Hang);
    assert_eq!(one.read(0).await.unwrap_err().fault, Fault::TimedOut);
}

#[tokio::test]
async fn a_lease_whose_answer_was_lost_is_taken_once_more_before_it_is_led_by() {
    let fake = Fake::start().await;
    let one = fake.replica("one");
    let session = one.open();
    look(&one).await;
    fake.does(Does::Swallow);
    one.acquire(&session).await.unwrap_err();
    fake.does(Does::Answer);
    assert_eq!(look(&one).await, Key::Free);
    assert!(one.acquire(&session).await.unwrap());
    assert_eq!(holder(&one).await.index, 2);
    assert_eq!(fake.world.lock().unwrap().writes, 2);
}

#[tokio::test]
async fn what_runs_out_is_looked_at_then() {
    let fake = Fake::start().await;
    let (one, two) = (fake.replica("one"), fake.replica("two"));
    let session = one.open();
    look(&one).await;
    assert!(one.acquire(&session).await.unwrap());
    holder(&two).await;
    let now = Instant::now();
    let left = |after: Duration| two.view().runs_out_in(now + after);
    assert!(left(Duration::ZERO).unwrap() > Duration::from_secs(1));
    assert!(left(Duration::from_secs(14)).unwrap() <= Duration::from_secs(1));
    assert_eq!(left(Duration::from_secs(15)), None);
}
