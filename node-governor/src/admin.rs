// SPDX-License-Identifier: Apache-2.0
//! What can be asked over HTTP: `/metrics`, `/live`, `/ready`, `/state`, `/timeline`. Read only.

mod shares;
mod view;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{io, thread};

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use rustix::process::setpriority_process;
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, oneshot};
use tokio_util::sync::CancellationToken;
use weir_pages::Limits;

use crate::book::{CoreBook, Shared};
use crate::sense::now;
use crate::timeline;
pub use shares::{JobView, SharesView};
pub use view::{CoreView, HotView, View};

const INDEX: &str = "weir-governor\n\n\
    /metrics  Prometheus text\n\
    /live     200 while decisions are made\n\
    /ready    200 while every core that is online is governed\n\
    /state    what each core does, and each job, as JSON\n\
    /timeline what happened to the service's cores and the jobs, as a page\n";

/// What handlers share.
#[derive(Clone, Debug)]
pub struct App {
    book: Shared,
    registry: Arc<Registry>,
    functions: Arc<[(u8, String)]>,
    timeline: Option<Arc<Timeline>>,
}

/// One page is made at a time: each takes some megabytes, and a core for a moment.
#[derive(Debug)]
struct Timeline {
    folder: PathBuf,
    turn: Arc<Semaphore>,
}

impl App {
    /// Shows the book, with these names of functions.
    pub fn new(book: Shared, functions: Vec<(u8, String)>) -> Self {
        Self {
            registry: Arc::new(crate::metrics::registry(book.clone())),
            book,
            functions: functions.into(),
            timeline: None,
        }
    }

    /// The page of metrics.
    pub fn metrics_page(&self) -> Option<String> {
        weir_pages::text(&self.registry).ok()
    }

    /// Shows the timeline that is in this folder, too.
    pub fn with_timeline(self, folder: Option<PathBuf>) -> Self {
        let timeline = |folder| Timeline {
            folder,
            turn: Arc::new(Semaphore::new(1)),
        };
        Self {
            timeline: folder.map(|folder| Arc::new(timeline(folder))),
            ..self
        }
    }
}

/// Whoever opens more, or says nothing, keeps no file descriptor from the cores.
const LIMITS: Limits = Limits {
    most: 16,
    longest: Duration::from_secs(5),
};

/// Serves until `shutdown`, one answer a connection.
pub async fn serve(listener: TcpListener, app: App, shutdown: CancellationToken) {
    weir_pages::serve(listener, router(app), LIMITS, shutdown).await;
}

fn router(app: App) -> axum::Router {
    axum::Router::new()
        .route("/", get(async || INDEX))
        .route("/metrics", get(metrics))
        .route("/live", get(live))
        .route("/ready", get(ready))
        .route("/state", get(state))
        .route("/timeline", get(timeline))
        .fallback(async || {
            (
                StatusCode::NOT_FOUND,
                format!("no such page; there are\n\n{INDEX}"),
            )
        })
        .with_state(app)
}

async fn metrics(State(app): State<App>, headers: HeaderMap) -> Response {
    weir_pages::metrics(&app.registry, &headers)
}

/// Beyond the time at which a decision was due: longer than anything that a loop which works waits for.
const STUCK: Duration = Duration::from_secs(15);

async fn live(State(app): State<App>) -> Response {
    let book = app.book.read();
    let late = now().since(book.now).saturating_sub(book.sleep);
    match late > STUCK && book.ticks > 0 {
        false => "live\n".into_response(),
        true => {
            let reason = format!("no decision was made for {} s\n", late.as_secs());
            (StatusCode::SERVICE_UNAVAILABLE, reason).into_response()
        }
    }
}

async fn ready(State(app): State<App>) -> Response {
    let book = app.book.read();
    let resting = |core: &&CoreBook| core.status.online && !core.status.governed;
    match book.cores.iter().find(resting) {
        None if book.ticks > 0 => "ready\n".into_response(),
        None => (StatusCode::SERVICE_UNAVAILABLE, "starting\n").into_response(),
        Some(core) => {
            let reason = format!("cpu{} is left alone for now; see the log\n", core.number);
            (StatusCode::SERVICE_UNAVAILABLE, reason).into_response()
        }
    }
}

async fn timeline(State(app): State<App>) -> Response {
    let Some(timeline) = app.timeline.clone() else {
        let reason = "cores are not divided between a service and jobs\n";
        return (StatusCode::NOT_FOUND, reason).into_response();
    };
    let folder = timeline.folder.clone();
    match alone(&timeline.turn, move || timeline::page::html(&folder)).await {
        None => {
            let reason = "another page is being made; ask again\n";
            let later = [(header::RETRY_AFTER, "1")];
            (StatusCode::SERVICE_UNAVAILABLE, later, reason).into_response()
        }
        Some(Ok(page)) => Html(page).into_response(),
        Some(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            (StatusCode::NOT_FOUND, format!("{error}\n")).into_response()
        }
        Some(Err(error)) => wrong(error),
    }
}

/// The lowest priority, so that the service does not wait for somebody who looks.
const NICEST: i32 = 19;

/// What is made, in a thread that has the turn until it has ended, though whoever asked may have gone before; none
/// while another one has it.
async fn alone<T: Send + 'static>(
    turn: &Arc<Semaphore>,
    make: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Option<io::Result<T>> {
    let held = Arc::clone(turn).try_acquire_owned().ok()?;
    let (answer, made) = oneshot::channel();
    let started = thread::Builder::new().name("page".into()).spawn(move || {
        // Linux takes it for this thread alone. One that cannot be changed is as good as it can be.
        let _ = setpriority_process(None, NICEST);
        let made = make();
        drop(held);
        // Whoever asked may have gone.
        let _ = answer.send(made);
    });
    Some(match started {
        Ok(_) => made
            .await
            .unwrap_or_else(|gone| Err(io::Error::other(gone))),
        Err(error) => Err(error),
    })
}

fn wrong(error: impl ToString) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
}

async fn state(State(app): State<App>) -> Json<View> {
    Json(View::new(&app.book.read(), &app.functions))
}

#[cfg(test)]
mod tests;
