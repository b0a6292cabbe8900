// SPDX-License-Identifier: Apache-2.0
//! What can be asked over HTTP: `/metrics`, `/ready`, `/state`, `/timeline`. Read only.

mod shares;
mod view;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::book::{CoreBook, Shared};
use crate::timeline;
pub use shares::{JobView, SharesView};
pub use view::{CoreView, HotView, View};

const INDEX: &str = "weir-governor\n\n\
    /metrics  Prometheus text\n\
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
    turn: Semaphore,
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

    /// Shows the timeline that is in this folder, too.
    pub fn with_timeline(self, folder: Option<PathBuf>) -> Self {
        let timeline = |folder| Timeline {
            folder,
            turn: Semaphore::new(1),
        };
        Self {
            timeline: folder.map(|folder| Arc::new(timeline(folder))),
            ..self
        }
    }
}

/// Connections at once, and how long one may last: whoever opens more, or says nothing, keeps no file descriptor
/// from the cores.
const MOST: usize = 16;
const LONGEST: Duration = Duration::from_secs(5);

/// Serves until `shutdown`, one answer a connection.
pub async fn serve(listener: TcpListener, app: App, shutdown: CancellationToken) {
    let service = TowerToHyperService::new(router(app));
    let mut http = http1::Builder::new();
    http.keep_alive(false);
    let mut open = JoinSet::new();
    loop {
        tokio::select! {
            () = shutdown.cancelled() => break,
            Some(_) = open.join_next() => {}
            accepted = listener.accept(), if open.len() < MOST => match accepted {
                Ok((stream, _)) => {
                    let connection = http.serve_connection(TokioIo::new(stream), service.clone());
                    open.spawn(tokio::time::timeout(LONGEST, connection));
                }
                // Out of file descriptors, most likely.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            },
        }
    }
    while open.join_next().await.is_some() {}
}

fn router(app: App) -> axum::Router {
    axum::Router::new()
        .route("/", get(async || INDEX))
        .route("/metrics", get(metrics))
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

async fn metrics(State(app): State<App>) -> Response {
    let mut page = String::new();
    match encode(&mut page, &app.registry) {
        Ok(()) => {
            let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
            ([(header::CONTENT_TYPE, kind)], page).into_response()
        }
        Err(error) => wrong(error),
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
    // It is never closed.
    let _turn = timeline.turn.acquire().await;
    let made = tokio::task::spawn_blocking({
        let folder = timeline.folder.clone();
        move || timeline::page::html(&folder)
    });
    match made.await {
        Ok(Ok(page)) => Html(page).into_response(),
        Ok(Err(error)) if error.kind() == io::ErrorKind::NotFound => {
            (StatusCode::NOT_FOUND, format!("{error}\n")).into_response()
        }
        Ok(Err(error)) => wrong(error),
        Err(error) => wrong(error),
    }
}

fn wrong(error: impl ToString) -> Response {
    (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response()
}

async fn state(State(app): State<App>) -> Json<View> {
    Json(View::new(&app.book.read(), &app.functions))
}

#[cfg(test)]
mod tests;
