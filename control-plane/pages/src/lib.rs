// SPDX-License-Identifier: Apache-2.0
//! Serves pages to people and Prometheus, whoever else holds connections open.
//!
//! A connection carries one answer and lasts no longer than it is given. Where all places are taken, the oldest
//! connection without a question makes room for the next one: thousands that say nothing, or say it one byte a
//! second, keep nobody out.

mod metrics;
mod process;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Request, State};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::Response;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{AbortHandle, JoinSet};
use tokio_util::sync::CancellationToken;

pub use metrics::{answer, metrics, register};

/// After an error of the listener: out of file descriptors, most likely.
const PAUSE: Duration = Duration::from_millis(100);
/// Of one question, its headers included. Ours have a few hundred bytes.
const MOST_BYTES: usize = 16 << 10;

/// What callers may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once.
    pub most: usize,
    /// From the first to the last byte of a connection.
    pub longest: Duration,
}

/// Serves until `shutdown`, then until what was asked is answered.
pub async fn serve(
    listener: TcpListener,
    pages: Router,
    limits: Limits,
    shutdown: CancellationToken,
) {
    let mut open = Open::default();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = open.tasks.join_next() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => open.take(stream, pages.clone(), limits),
                Err(_) => tokio::time::sleep(PAUSE).await,
            },
        }
    }
    open.close_idle();
    while open.tasks.join_next().await.is_some() {}
}

/// Connections, the oldest first.
#[derive(Debug, Default)]
struct Open {
    tasks: JoinSet<()>,
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    task: AbortHandle,
    asked: Asked,
}

/// Whether a question has come.
type Asked = Arc<AtomicBool>;

impl Open {
    fn take(&mut self, stream: TcpStream, pages: Router, limits: Limits) {
        self.places.retain(|place| !place.task.is_finished());
        if self.places.len() >= limits.most {
            // The oldest of those that are more: who asks and does not read is no better than who does not ask.
            let asked = self.places.iter().filter(|place| place.has_asked());
            let mostly = 2 * asked.count() > self.places.len();
            let oldest = self
                .places
                .iter()
                .position(|place| place.has_asked() == mostly);
            self.places.remove(oldest.unwrap_or(0)).task.abort();
        }
        let asked = Asked::default();
        let pages = pages.layer(from_fn_with_state(asked.clone(), note));
        let connection = http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(MOST_BYTES)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages));
        let task = self.tasks.spawn(async move {
            // Nobody is left to tell of an error.
            let _ = tokio::time::timeout(limits.longest, connection).await;
        });
        self.places.push(Place { task, asked });
    }

    fn close_idle(&self) {
        for place in self.places.iter().filter(|place| !place.has_asked()) {
            place.task.abort();
        }
    }
}

impl Place {
    fn has_asked(&self) -> bool {
        self.asked.load(Ordering::Relaxed)
    }
}

async fn note(State(asked): State<Asked>, request: Request, next: Next) -> Response {
    asked.store(true, Ordering::Relaxed);
    next.run(request).await
}
