// SPDX-License-Identifier: Apache-2.0
//! An API server with one Lease that does as each test wants, on a free port.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::Request;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;

use super::MAX_BYTES;
use crate::config::replicas::Lease as Settings;
use crate::config::{Access, ApiServer, Bearer, Server, Token};

/// What the server does with a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::leader) enum Does {
    Answer,
    Fail(u16),
    /// It takes the question and says nothing.
    Hang,
    Garbage,
    /// Writes what it is told, and says nothing.
    Swallow,
    /// Somebody else writes before each write.
    Overtake,
    /// Creates nothing, as by a quota.
    Full,
    /// Denies all writes.
    ReadOnly,
}

pub(in crate::leader) struct World {
    pub(in crate::leader) lease: Option<Value>,
    version: u64,
    pub(in crate::leader) writes: usize,
}

#[derive(Clone)]
pub(in crate::leader) struct Fake {
    address: SocketAddr,
    pub(in crate::leader) world: Arc<Mutex<World>>,
    /// To those who come by this address.
    does: Arc<Mutex<Does>>,
}

fn status(code: u16, message: &str) -> Response {
    let body = json!({ "kind": "Status", "code": code, "message": message });
    (StatusCode::from_u16(code).unwrap(), axum::Json(body)).into_response()
}

impl World {
    pub(in crate::leader) fn store(&mut self, mut object: Value) -> Value {
        self.version += 1;
        object["metadata"]["resourceVersion"] = json!(self.version.to_string());
        self.lease = Some(object.clone());
        object
    }

    /// As the API server: no write over another version.
    fn write(&mut self, method: &str, object: Value, does: Does) -> Response {
        self.writes += 1;
        if does == Does::Overtake
            && let Some(mut lease) = self.lease.clone()
        {
            lease["spec"]["renewTime"] = json!(format!("{}", self.version));
            self.store(lease);
        }
        let there = self.lease.as_ref();
        match (method, there) {
            ("POST", Some(_)) => status(409, "already exists"),
            ("POST", None) if does == Does::Full => status(500, "no room for another one"),
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
    pub(in crate::leader) async fn start() -> Self {
        Self::at(Arc::new(Mutex::new(World {
            lease: None,
            version: 100,
            writes: 0,
        })))
        .await
    }

    /// The same server at another address, by which it may do otherwise.
    pub(in crate::leader) async fn beside(&self) -> Self {
        Self::at(self.world.clone()).await
    }

    async fn at(world: Arc<Mutex<World>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let does = Arc::new(Mutex::new(Does::Answer));
        let fake = Self {
            address,
            world,
            does,
        };
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
        let does = *self.does.lock().unwrap();
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
        if does == Does::ReadOnly {
            return status(403, "it does not");
        }
        let object = serde_json::from_slice(&body).unwrap();
        let answer = self.world.lock().unwrap().write(method, object, does);
        match does {
            Does::Swallow => status(504, "the answer was lost"),
            _ => answer,
        }
    }

    pub(in crate::leader) fn does(&self, does: Does) {
        *self.does.lock().unwrap() = does;
    }

    pub(in crate::leader) fn spec(&self) -> Value {
        let world = self.world.lock().unwrap();
        world
            .lease
            .as_ref()
            .map_or(Value::Null, |it| it["spec"].clone())
    }

    /// How it is asked for the Lease.
    pub(in crate::leader) fn settings(&self, duration: Duration) -> Settings {
        let server = Server {
            url: format!("http://{}", self.address),
            ca: None,
            identity: None,
        };
        let bearer = Some(Bearer::Token(Token::read(b"one").unwrap()));
        Settings {
            namespace: "weir-system".to_owned(),
            name: "weir-control".to_owned(),
            duration,
            access: Access::Written(ApiServer { server, bearer }),
        }
    }
}
