// SPDX-License-Identifier: Apache-2.0
//! The HTTP face of a host, and how it leaves.

pub mod app;
pub mod emulated;
pub(crate) mod failure;
pub mod faults;
pub(crate) mod spent;
mod traced;

use std::fmt::Debug;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::middleware::from_fn;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::serve::Listener;
use serde::Deserialize;
use tokio::sync::oneshot;
use tracing::{info, warn};
use weir_executor::Work;

use crate::host::Gone;
use crate::patience::PatientListener;
use app::App;
use failure::Failure;

/// How often the drain looks whether the last job is done.
const DRAIN_LOOK: Duration = Duration::from_millis(50);
/// For the last answers after the drain.
const FAREWELL: Duration = Duration::from_secs(2);

/// Requests that are compiled at the same time: each may take some of the memory that its limits
/// allow, and a thread.
pub const COMPILING: usize = 8;

/// How a host leaves.
#[derive(Debug, Clone, Copy)]
pub struct Leaving {
    /// How long it goes on as if nothing were, but for saying that it leaves: until those who ask
    /// it for its state have asked.
    pub notice: Duration,
    /// How long jobs may go on in all.
    pub drain: Duration,
}

/// Serves until `shutdown` resolves, then drains: `/ready` says 503 at once, jobs go on and are
/// still accepted for the notice and until none is left and every answer is sent, or the drain's
/// time has passed, and whatever is left is answered 503.
/// `jobs` serves every path but `/metrics`, `/cache` and `/ready`.
pub async fn run<W: Work>(
    listener: impl Listener<Addr: Debug>,
    app: Arc<App<W>>,
    jobs: Router,
    leaving: Leaving,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let router = Router::new()
        .route("/metrics", get(serve_metrics))
        .route("/cache", get(serve_cache))
        .route("/ready", get(serve_ready))
        .with_state(Arc::clone(&app))
        .fallback_service(jobs.layer(from_fn(traced::job)));
    let (leave, left) = oneshot::channel::<()>();
    let serving =
        axum::serve(PatientListener::from(listener), router).with_graceful_shutdown(async {
            // A dropped sender means the same: leave.
            let _ = left.await;
        });
    let mut serving = tokio::spawn(serving.into_future());
    shutdown.await;
    app.drain();
    info!(?leaving, "draining");
    let Leaving { notice, drain } = leaving;
    let notice = notice.min(drain);
    tokio::time::sleep(notice).await;
    let finish = async {
        no_jobs(&app).await;
        drop(leave);
        // Large answers may still be on their way, and requests on theirs to become jobs.
        (&mut serving).await
    };
    let finished = tokio::time::timeout(drain - notice, finish).await;
    if finished.is_err() {
        warn!("jobs were unfinished at the end of the drain and are answered 503");
    }
    let farewell = async {
        // A joblet that nobody waits for may still run, and its I/O needs this runtime. A host that
        // is gone already runs nothing.
        let _ = app.host.stop().await;
        match finished {
            Ok(served) => served,
            Err(_) => serving.await,
        }
    };
    match tokio::time::timeout(FAREWELL, farewell).await {
        Ok(served) => served??,
        Err(_) => warn!("connections or joblets were left at the end"),
    }
    Ok(())
}

async fn no_jobs<W: Work>(app: &App<W>) {
    while app.host.look().await.is_ok_and(|p| p.unanswered > 0) {
        tokio::time::sleep(DRAIN_LOOK).await;
    }
}

async fn serve_metrics<W: Work>(State(app): State<Arc<App<W>>>, headers: HeaderMap) -> Response {
    let Ok(picture) = app.host.look().await else {
        return Failure::gone().into_response();
    };
    let Some(text) = app.metrics_text(&picture) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    weir_pages::answer(text, &headers)
}

/// Both are text: a number that makes no sense is as good as none, and answered with a reset.
#[derive(Debug, Deserialize)]
struct CacheQuery {
    since: Option<String>,
    epoch: Option<String>,
}

async fn serve_cache<W: Work>(
    State(app): State<Arc<App<W>>>,
    Query(query): Query<CacheQuery>,
) -> Response {
    let since = query.since.and_then(|v| v.parse().ok()).unwrap_or(0);
    let epoch = query.epoch.map(|v| v.parse().unwrap_or(0));
    match app.host.cache(since, epoch).await {
        Ok(changes) => axum::Json(changes).into_response(),
        Err(Gone) => Failure::gone().into_response(),
    }
}

async fn serve_ready<W: Work>(State(app): State<Arc<App<W>>>) -> Response {
    if app.host.look().await.is_err() {
        return Failure::gone().into_response();
    }
    if app.is_draining() {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response();
    }
    "ready\n".into_response()
}
