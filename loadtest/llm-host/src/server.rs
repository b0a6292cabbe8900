// SPDX-License-Identifier: Apache-2.0
//! The HTTP face of a host, in the manner of vLLM, with what Weir reads beside it.

mod completion;
mod failure;
mod prefill;
mod request;
mod stream;
mod written;

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::serve::ListenerExt;
use serde::Deserialize;
use tokio::net::TcpListener;

use crate::host::Host;
use crate::metrics::Metrics;
use crate::request_log::RequestLog;
use failure::Failure;
use request::Api;

/// Everything that handlers of one host share.
#[derive(Debug)]
pub struct App {
    /// Where it listens.
    pub address: SocketAddr,
    /// The model.
    pub host: Arc<Host>,
    /// What it tells Prometheus.
    pub metrics: Metrics,
    /// The name of the model.
    pub model: String,
    /// Tokens of a block.
    pub block_tokens: usize,
    /// Keys are lists of names of blocks.
    pub key_separator: Option<char>,
    /// The header that names the host which reads a request's prompt for this one.
    pub prefill_header: Option<HeaderName>,
    /// Where answered requests are noted; shared between hosts.
    pub log: Option<Arc<RequestLog>>,
}

/// Serves until the task is dropped.
///
/// # Errors
/// The listener fails.
pub async fn serve(listener: TcpListener, app: App, max_body_bytes: usize) -> std::io::Result<()> {
    let listener = listener.tap_io(|stream| {
        // Answers are small: waiting to fill a packet would only add to what is measured.
        let _ = stream.set_nodelay(true);
    });
    let router = Router::new()
        .route(Api::Completions.path(), post(completion::complete))
        .route(Api::Chat.path(), post(completion::chat))
        .route("/v1/models", get(models))
        .route("/metrics", get(metrics))
        .route("/cache", get(cache))
        .method_not_allowed_fallback(async || Failure::method())
        .fallback(async || Failure::path())
        .layer(DefaultBodyLimit::max(max_body_bytes))
        .with_state(Arc::new(app));
    axum::serve(listener, router).await
}

async fn models(State(app): State<Arc<App>>) -> Response {
    axum::Json(written::models(&app.model)).into_response()
}

async fn metrics(State(app): State<Arc<App>>, headers: HeaderMap) -> Response {
    match app.metrics.page(&app.host.load()) {
        Ok(page) => weir_pages::answer(page, &headers),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Both are text: a number that makes no sense is as good as none, and answered with a reset.
#[derive(Deserialize)]
struct CacheQuery {
    since: Option<String>,
    epoch: Option<String>,
}

async fn cache(State(app): State<Arc<App>>, Query(query): Query<CacheQuery>) -> Response {
    let since = query.since.and_then(|v| v.parse().ok()).unwrap_or(0);
    let epoch = query.epoch.map(|v| v.parse().unwrap_or(0));
    axum::Json(app.host.cache_changes(since, epoch)).into_response()
}

fn number(n: u64) -> HeaderValue {
    HeaderValue::from(n)
}
