// SPDX-License-Identifier: Apache-2.0
//! A server that speaks as much of S3 as a host asks for, and does as a test wants: a body can be
//! held for as long as it takes, so a FeedSource lasts until the test has seen what it waits for.

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;

use crate::client::GIVE_UP;

/// A held body comes a byte at a time, as a client gives up on a store that is silent for seconds.
const DRIP: Duration = Duration::from_millis(300);

/// What happens to the bodies of an object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Mood {
    Well,
    /// They do not end until the mood is another, which then applies.
    Held,
    /// Half of what is left comes, then the connection breaks.
    Cut,
    /// This status instead of a body.
    Fails(u16),
}

struct Item {
    content: Bytes,
    version: u32,
    mood: watch::Sender<Mood>,
}

#[derive(Default)]
struct Inner {
    items: Mutex<BTreeMap<String, Item>>,
    /// Every request fails so.
    down: Mutex<Option<u16>>,
    /// The objects whose bodies were asked for, in order.
    asked: watch::Sender<Vec<String>>,
}

pub(crate) struct Bucket {
    inner: Arc<Inner>,
    pub(crate) address: SocketAddr,
}

impl Bucket {
    /// With a project of each name and its items as NDJSON.
    pub(crate) async fn start(projects: &[(&str, &str)]) -> Self {
        let inner = Arc::<Inner>::default();
        let router = Router::new()
            .fallback(answer)
            .with_state(Arc::clone(&inner));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(async { axum::serve(listener, router).await.unwrap() });
        let bucket = Self { inner, address };
        for (project, items) in projects {
            bucket.put(project, items);
        }
        bucket
    }

    /// Adds a project or replaces its object.
    pub(crate) fn put(&self, project: &str, items: &str) {
        let content = Bytes::from(items.to_owned());
        let mut all = self.inner.items.lock().unwrap();
        let item = all
            .entry(format!("{project}.ndjson"))
            .or_insert_with(|| Item {
                content: Bytes::new(),
                version: 0,
                mood: watch::Sender::new(Mood::Well),
            });
        item.content = content;
        item.version += 1;
    }

    pub(crate) fn set(&self, project: &str, mood: Mood) {
        let all = self.inner.items.lock().unwrap();
        all[&format!("{project}.ndjson")].mood.send_replace(mood);
    }

    /// From now on every request fails so, or none.
    pub(crate) fn set_down(&self, status: Option<u16>) {
        *self.inner.down.lock().unwrap() = status;
    }

    /// The projects whose items were asked for, in order.
    pub(crate) fn asked(&self) -> Vec<String> {
        self.inner.asked.borrow().clone()
    }

    /// Waits until the items of a project have been asked for so many times.
    pub(crate) async fn until_asked(&self, project: &str, times: usize) {
        let mut asked = self.inner.asked.subscribe();
        let count = |all: &Vec<String>| all.iter().filter(|one| *one == project).count();
        let reached = timeout(GIVE_UP, asked.wait_for(|all| count(all) >= times)).await;
        let reached = reached.map(|all| drop(all.unwrap()));
        let all = self.asked();
        assert!(
            reached.is_ok(),
            "waited in vain for {times} of {project:?}: {all:?}"
        );
    }
}

async fn answer(State(inner): State<Arc<Inner>>, request: Request) -> Response {
    if let Some(status) = *inner.down.lock().unwrap() {
        return plain(status);
    }
    let path = request.uri().path();
    let name = path.strip_prefix("/items/").unwrap_or_default();
    let found = {
        let all = inner.items.lock().unwrap();
        let item = all.get(name);
        item.map(|item| (item.content.clone(), item.version, item.mood.subscribe()))
    };
    let Some((content, version, mood)) = found else {
        return plain(404);
    };
    let header = |name| {
        request
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
    };
    let etag = format!("\"{version}\"");
    if header("if-match").is_some_and(|wanted| wanted != etag) {
        return plain(412);
    }
    let start = header("range").map(|range| {
        let range = range.strip_prefix("bytes=").unwrap();
        range.split('-').next().unwrap().parse::<usize>().unwrap()
    });
    let body = content.slice(start.unwrap_or(0)..);
    let mut response = Response::builder()
        .status(if start.is_some() { 206 } else { 200 })
        .header("etag", etag)
        .header("last-modified", "Tue, 01 Jan 2019 00:00:00 GMT")
        .header("content-length", body.len());
    if let Some(start) = start {
        let total = content.len();
        response = response.header(
            "content-range",
            format!("bytes {start}-{}/{total}", total - 1),
        );
    }
    if request.method() == "HEAD" {
        return response.body(Body::empty()).unwrap();
    }
    let project = name.trim_end_matches(".ndjson").to_owned();
    inner.asked.send_modify(|asked| asked.push(project));
    let now = *mood.borrow();
    match now {
        Mood::Well => response.body(Body::from(body)).unwrap(),
        Mood::Fails(status) => plain(status),
        Mood::Held | Mood::Cut => {
            let (pipe, chunks) = mpsc::channel(1);
            tokio::spawn(trickle(body, mood, pipe));
            response
                .body(Body::from_stream(ReceiverStream::new(chunks)))
                .unwrap()
        }
    }
}

/// Sends `body` as the mood is. An error of `pipe` means that nobody reads any more.
async fn trickle(
    mut body: Bytes,
    mut mood: watch::Receiver<Mood>,
    pipe: mpsc::Sender<io::Result<Bytes>>,
) {
    loop {
        let now = *mood.borrow_and_update();
        match now {
            Mood::Held => {
                if body.len() > 1 && pipe.send(Ok(body.split_to(1))).await.is_err() {
                    return;
                }
                let _tick = timeout(DRIP, mood.changed()).await;
            }
            Mood::Well => {
                let _gone = pipe.send(Ok(body)).await;
                return;
            }
            Mood::Cut | Mood::Fails(_) => {
                let _gone = pipe.send(Ok(body.split_to(body.len() / 2))).await;
                let _gone = pipe.send(Err(io::Error::other("cut"))).await;
                return;
            }
        }
    }
}

fn plain(status: u16) -> Response {
    Response::builder()
        .status(status)
        .body(Body::empty())
        .unwrap()
}
