// SPDX-License-Identifier: Apache-2.0
//! A small server that speaks as much of S3 as reading one object takes, and fails on request.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use object_store::ClientConfigKey;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use reqwest::Url;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio_stream::StreamExt;

use super::super::{ItemStore, place};
use super::impatient;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Mood {
    Well,
    Fails(u16),
    Hangs,
    HangsInBodies,
    CutsBodies,
    CutsOneBody,
    IgnoresConditions,
    /// As to those who may read objects and not list them.
    DeniesTheAbsent,
}

struct Inner {
    path: String,
    object: Mutex<(Bytes, u32)>,
    mood: Mutex<Mood>,
    asked: watch::Sender<usize>,
}

pub(super) struct Bucket {
    inner: Arc<Inner>,
    address: String,
    server: JoinHandle<()>,
}

impl Bucket {
    /// With one object at `path`, which begins with the bucket's name.
    pub(super) async fn start(path: &str, content: &'static str) -> Self {
        let inner = Arc::new(Inner {
            path: format!("/{path}"),
            object: Mutex::new((Bytes::from(content), 0)),
            mood: Mutex::new(Mood::Well),
            asked: watch::Sender::new(0),
        });
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&inner));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let server = tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        Self {
            inner,
            address,
            server,
        }
    }

    pub(super) fn builder(&self, allow_http: bool) -> AmazonS3Builder {
        let allow = AmazonS3ConfigKey::Client(ClientConfigKey::AllowHttp);
        AmazonS3Builder::new()
            .with_endpoint(&self.address)
            .with_access_key_id("key")
            .with_secret_access_key("secret")
            .with_config(allow, allow_http.to_string())
    }

    pub(super) fn store(&self, url: &str) -> ItemStore {
        let parsed = Url::parse(url).unwrap();
        let (store, root) = place::s3(self.builder(true), &parsed, &impatient()).unwrap();
        ItemStore::new(url, store, root)
    }

    pub(super) fn set(&self, mood: Mood) {
        *self.inner.mood.lock().unwrap() = mood;
    }

    pub(super) fn replace(&self, content: &'static str) {
        let mut object = self.inner.object.lock().unwrap();
        *object = (Bytes::from(content), object.1 + 1);
    }

    pub(super) fn asked(&self) -> usize {
        *self.inner.asked.borrow()
    }

    pub(super) async fn asked_more_than(&self, times: usize) {
        let mut asked = self.inner.asked.subscribe();
        asked.wait_for(|now| *now > times).await.unwrap();
    }

    pub(super) async fn stop(self) {
        self.server.abort();
        assert!(self.server.await.unwrap_err().is_cancelled());
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    inner.asked.send_modify(|asked| *asked += 1);
    let mood = *inner.mood.lock().unwrap();
    match mood {
        Mood::Fails(status) => return plain(status),
        Mood::Hangs => std::future::pending().await,
        _ => {}
    }
    if request.uri().path() != inner.path {
        return plain(if mood == Mood::DeniesTheAbsent {
            403
        } else {
            404
        });
    }
    let (content, version) = inner.object.lock().unwrap().clone();
    let etag = format!("\"{version}\"");
    let header = |name| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    if mood != Mood::IgnoresConditions && header("if-match").is_some_and(|wanted| wanted != etag) {
        return plain(412);
    }
    let start = header("range").map(|range| {
        let range = range.strip_prefix("bytes=").unwrap();
        range.split('-').next().unwrap().parse::<usize>().unwrap()
    });
    let total = content.len();
    let body = content.slice(start.unwrap_or(0)..);
    let mut response = Response::builder()
        .status(if start.is_some() { 206 } else { 200 })
        .header("etag", etag)
        .header("last-modified", "Tue, 01 Jan 2019 00:00:00 GMT")
        .header("content-length", body.len());
    if let Some(start) = start {
        let range = format!("bytes {start}-{}/{total}", total - 1);
        response = response.header("content-range", range);
    }
    let body = match mood {
        _ if request.method() == "HEAD" => Body::empty(),
        Mood::CutsOneBody => {
            *inner.mood.lock().unwrap() = Mood::Well;
            half(body, true)
        }
        Mood::CutsBodies => half(body, true),
        Mood::HangsInBodies => half(body, false),
        _ => Body::from(body),
    };
    response.body(body).unwrap()
}

/// Half of `body`; then the connection breaks, or nothing comes any more.
fn half(body: Bytes, breaks: bool) -> Body {
    let half = body.slice(..body.len() / 2);
    let first = tokio_stream::once(Ok::<_, std::io::Error>(half));
    let broken = tokio_stream::once(Err(std::io::Error::other("broken off")));
    match breaks {
        true => Body::from_stream(first.chain(broken)),
        false => Body::from_stream(first.chain(tokio_stream::pending())),
    }
}

fn plain(status: u16) -> Response {
    Response::builder()
        .status(status)
        .body(Body::empty())
        .unwrap()
}
