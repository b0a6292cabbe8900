// SPDX-License-Identifier: Apache-2.0
//! Serves pages to people and Prometheus, whoever else holds connections open.
//!
//! A connection carries one answer and lasts no longer than it is given. Where all places are taken, the oldest
//! connection without a question makes room for the next one: thousands that say nothing, or say it one byte a
//! second, keep nobody out. An answer that [`Lasts`] goes on for as long as its reader takes it in.

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
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;

pub use metrics::{answer, metrics, quality, register, text};

/// After an error of the listener: out of file descriptors, most likely.
const PAUSE: Duration = Duration::from_millis(100);
/// Of one question, its headers included. Ours have a few hundred bytes.
const MOST_BYTES: usize = 16 << 10;

/// What callers may take.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at once.
    pub most: usize,
    /// From the first to the last byte of a connection. Of an answer that [`Lasts`]: without a byte that its reader
    /// takes.
    pub longest: Duration,
}

/// An extension of an answer without a set end, such as a stream of events. Whoever gives it limits their number.
#[derive(Clone, Copy, Debug)]
pub struct Lasts;

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
    course: Arc<Course>,
}

/// How far a connection has come.
#[derive(Debug, Default)]
struct Course {
    /// A question has come.
    asked: AtomicBool,
    /// Its answer has no set end.
    lasts: AtomicBool,
}

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
        let course = Arc::<Course>::default();
        let pages = pages.layer(from_fn_with_state(course.clone(), note));
        // Boxed, as it is not to be moved.
        let mut stream = Box::pin(TimeoutStream::new(stream));
        stream
            .as_mut()
            .set_write_timeout_pinned(Some(limits.longest));
        let connection = http1::Builder::new()
            .keep_alive(false)
            .max_buf_size(MOST_BYTES)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(pages));
        let end = course.clone().end(limits.longest);
        let task = self.tasks.spawn(async move {
            tokio::select! {
                // Nobody is left to tell of an error.
                _ = connection => {}
                () = end => {}
            }
        });
        self.places.push(Place { task, course });
    }

    fn close_idle(&self) {
        for place in self.places.iter().filter(|place| !place.has_asked()) {
            place.task.abort();
        }
    }
}

impl Place {
    fn has_asked(&self) -> bool {
        self.course.asked.load(Ordering::Relaxed)
    }
}

impl Course {
    /// Returns when the connection has lasted for too long.
    async fn end(self: Arc<Self>, longest: Duration) {
        tokio::time::sleep(longest).await;
        if self.lasts.load(Ordering::Relaxed) {
            std::future::pending().await
        }
    }
}

async fn note(State(course): State<Arc<Course>>, request: Request, next: Next) -> Response {
    course.asked.store(true, Ordering::Relaxed);
    let answer = next.run(request).await;
    let lasts = answer.extensions().get::<Lasts>().is_some();
    course.lasts.store(lasts, Ordering::Relaxed);
    answer
}
