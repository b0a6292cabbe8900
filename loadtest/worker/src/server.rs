// SPDX-License-Identifier: Apache-2.0
//! The HTTP face of a host, and how it leaves.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use serde::Deserialize;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tracing::{info, warn};

use crate::executor::{Done, Load, Source};
use crate::host::{Answer, Gone, Host};
use crate::metrics::Families;
use crate::orca;
use crate::request::{self, Priorities};

/// How often the drain looks whether the last job is done.
const DRAIN_LOOK: Duration = Duration::from_millis(50);
/// For answers under way once no job is left.
const FAREWELL: Duration = Duration::from_secs(2);

/// What the server needs to know besides the host.
#[derive(Debug)]
pub struct Options {
    /// Priority names.
    pub priorities: Priorities,
    /// Run time of a request that says none.
    pub default_run: Duration,
    /// How long jobs may go on after the order to leave.
    pub drain: Duration,
}

#[derive(Debug)]
struct App {
    host: Host,
    metrics: Families,
    registry: Registry,
    options: Options,
    classes: Vec<u8>,
    id: HeaderValue,
    draining: AtomicBool,
}

/// Serves until `shutdown` resolves, then drains: `/ready` says 503 at once, jobs go on and are
/// still accepted until none is left or the limit has passed, and whatever is left is answered 503.
pub async fn run(
    listener: TcpListener,
    host: Host,
    metrics: Families,
    options: Options,
    shutdown: impl Future<Output = ()>,
) -> anyhow::Result<()> {
    let mut registry = Registry::default();
    metrics.register(&mut registry, "weir_host");
    let app = Arc::new(App {
        classes: options.priorities.classes(),
        id: HeaderValue::from_str(&listener.local_addr()?.to_string())?,
        draining: AtomicBool::new(false),
        host,
        metrics,
        registry,
        options,
    });
    let router = Router::new()
        .route("/metrics", get(serve_metrics))
        .route("/cache", get(serve_cache))
        .route("/ready", get(serve_ready))
        .fallback(serve_job)
        .with_state(Arc::clone(&app));
    let (leave, left) = oneshot::channel::<()>();
    let serving = axum::serve(listener, router).with_graceful_shutdown(async {
        // A dropped sender means the same: leave.
        let _ = left.await;
    });
    let serving = tokio::spawn(serving.into_future());
    shutdown.await;
    app.draining.store(true, Ordering::Relaxed);
    info!(limit = ?app.options.drain, "draining");
    drain(&app).await;
    drop(leave);
    match tokio::time::timeout(FAREWELL, serving).await {
        Ok(served) => served??,
        Err(_) => warn!("connections were still open at the end"),
    }
    Ok(())
}

async fn drain(app: &App) {
    let idle = async {
        while app.host.look().await.is_ok_and(|p| p.unanswered > 0) {
            tokio::time::sleep(DRAIN_LOOK).await;
        }
    };
    if tokio::time::timeout(app.options.drain, idle).await.is_err() {
        warn!("jobs were unfinished at the end of the drain and are answered 503");
        // A host that is gone already has answered its jobs.
        let _ = app.host.stop().await;
    }
}

async fn serve_metrics(State(app): State<Arc<App>>) -> Response {
    let Ok(picture) = app.host.look().await else {
        return gone();
    };
    app.metrics.show(&picture, &app.classes);
    let mut text = String::new();
    if prometheus_client::encoding::text::encode(&mut text, &app.registry).is_err() {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// Both are text: a number that makes no sense is as good as none, and answered with a reset.
#[derive(Debug, Deserialize)]
struct CacheQuery {
    since: Option<String>,
    epoch: Option<String>,
}

async fn serve_cache(State(app): State<Arc<App>>, Query(query): Query<CacheQuery>) -> Response {
    let since = query.since.and_then(|v| v.parse().ok()).unwrap_or(0);
    let epoch = query.epoch.map(|v| v.parse().unwrap_or(0));
    match app.host.cache(since, epoch).await {
        Ok(changes) => axum::Json(changes).into_response(),
        Err(Gone) => gone(),
    }
}

async fn serve_ready(State(app): State<Arc<App>>) -> Response {
    if app.draining.load(Ordering::Relaxed) {
        return (StatusCode::SERVICE_UNAVAILABLE, "draining\n").into_response();
    }
    "ready\n".into_response()
}

async fn serve_job(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    let options = &app.options;
    let (job, run) = match request::parse(&headers, &options.priorities, options.default_run) {
        Ok(parsed) => parsed,
        Err(bad) => {
            let answer = (StatusCode::BAD_REQUEST, format!("{bad}\n")).into_response();
            let load = app.host.look().await.map(|picture| picture.load);
            return app.sign(answer, load.ok().as_ref());
        }
    };
    match app.host.submit(job, run).await {
        Ok(Answer::Done(done, load)) => app.sign(done_response(&done), Some(&load)),
        Ok(Answer::Refused(reason, load)) => app.sign(unavailable(&reason), Some(&load)),
        Ok(Answer::Stopped(load)) => app.sign(
            unavailable("cancelled: the host is shutting down"),
            Some(&load),
        ),
        Err(Gone) => app.sign(gone(), None),
    }
}

impl App {
    /// Adds who answered and how loaded it is.
    fn sign(&self, mut response: Response, load: Option<&Load>) -> Response {
        let headers = response.headers_mut();
        headers.insert("x-worker-id", self.id.clone());
        let text = load.map(|load| orca::text(load, &self.classes));
        if let Some(Ok(value)) = text.map(HeaderValue::try_from) {
            headers.insert(orca::HEADER, value);
        }
        response
    }
}

fn done_response(done: &Done) -> Response {
    let mut response = "done\n".into_response();
    let headers = response.headers_mut();
    headers.insert("x-worker-wait-us", micros(done.wait));
    headers.insert("x-worker-fetch-us", micros(done.fetch));
    headers.insert("x-worker-run-us", micros(done.run));
    let cache = match done.source {
        Source::None => None,
        Source::Hit => Some("hit"),
        Source::Miss => Some("miss"),
        Source::Shared => Some("shared"),
    };
    if let Some(cache) = cache {
        headers.insert("x-worker-cache", HeaderValue::from_static(cache));
    }
    response
}

fn micros(duration: Duration) -> HeaderValue {
    HeaderValue::from(u64::try_from(duration.as_micros()).unwrap_or(u64::MAX))
}

fn unavailable(reason: &str) -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, format!("{reason}\n")).into_response()
}

fn gone() -> Response {
    unavailable("the host has stopped")
}
