// SPDX-License-Identifier: Apache-2.0
//! What can be asked over HTTP: the live page with its `/events` and `/past`, `/metrics`, `/live`, `/ready`, `/tables`,
//! `/explain`, `/receipts`, `/shadow`. Read only.

mod events;
mod explain;
mod page;
mod past;
mod receipts;

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;
use weir_fleet::view::View;
use weir_pages::Limits;

use crate::alive;
use crate::metrics::Metrics;
use crate::news::News;

use events::Events;

pub use explain::{Explanation, Problem, Question, explain};

const INDEX: &str = "weir-control\n\n\
    /metrics  Prometheus text\n\
    /live     200 while news are taken in, whether or not there are tables\n\
    /ready    200; of several replicas while a leader is known, its tables are here and it is reached\n\
    /tables   what is pushed, from what, how old, and who refused what\n\
    /explain?cluster=&key=&priority=&user=  which hosts a request would go to, and why\n\
    /receipts?after=&limit=  decisions, term by term, and what came of them, as JSON lines\n\
    /shadow?cluster=  what was with Envoy's choice, beside what would have been with the filter's\n\
    /events   server-sent events: the fleet each second\n\
    /past     load, delay, level and state of hosts over the last fifteen minutes\n\n\
    In a browser this is a live page.\n";

/// What handlers share.
#[derive(Clone, Debug)]
pub struct App {
    updates: mpsc::Sender<News>,
    metrics: Metrics,
    registry: Arc<Registry>,
}

impl App {
    /// Asks the state's owner through `updates`; `metrics` are those of the `registry`.
    pub fn new(updates: mpsc::Sender<News>, metrics: Metrics, registry: Registry) -> Self {
        Self {
            updates,
            metrics,
            registry: Arc::new(registry),
        }
    }

    /// The page of metrics.
    pub fn metrics_page(&self) -> Option<String> {
        weir_pages::text(&self.registry).ok()
    }

    /// What the state's owner answers; it is gone only when the process ends.
    async fn ask<T>(
        &self,
        question: impl FnOnce(oneshot::Sender<T>) -> News,
    ) -> Result<T, Response> {
        let gone = || (StatusCode::SERVICE_UNAVAILABLE, "shutting down\n").into_response();
        News::ask(&self.updates, question).await.ok_or_else(gone)
    }

    async fn view(&self) -> Result<View, Response> {
        self.ask(News::View).await
    }
}

/// Prometheus, whoever looks, and to spare.
const LIMITS: Limits = Limits {
    most: 256,
    longest: Duration::from_secs(30),
};

/// Serves until `shutdown`, one answer a connection.
pub async fn serve(listener: TcpListener, app: App, shutdown: CancellationToken) {
    let (events, clock) = events::ends(app.updates.clone(), app.metrics.clone());
    let pages = weir_pages::serve(listener, router(app, events), LIMITS, shutdown.clone());
    tokio::join!(pages, clock.run(shutdown));
}

fn router(app: App, events: Events) -> axum::Router {
    let events = axum::Router::new()
        .route("/events", get(events::events))
        .route("/past", get(events::past))
        .with_state(events);
    axum::Router::new()
        .route("/", get(page::index))
        .route("/metrics", get(metrics))
        .route("/live", get(live))
        .route("/ready", get(ready))
        .route("/tables", get(tables))
        .route("/explain", get(explained))
        .route("/receipts", get(receipts::receipts))
        .route("/shadow", get(receipts::shadow))
        .fallback(async || {
            (
                StatusCode::NOT_FOUND,
                format!("no such page; there are\n\n{INDEX}"),
            )
        })
        .with_state(app)
        .merge(events)
        .merge(page::files())
        .layer(axum::middleware::map_response(page::guard))
}

async fn metrics(State(app): State<App>, headers: HeaderMap) -> Response {
    weir_pages::metrics(&app.registry, &headers)
}

async fn live(State(app): State<App>) -> Response {
    match alive::is_alive(&app.updates).await {
        true => "live\n".into_response(),
        false => {
            let reason = "the state's owner does not answer\n";
            (StatusCode::SERVICE_UNAVAILABLE, reason).into_response()
        }
    }
}

async fn ready(State(app): State<App>) -> Response {
    match app.ask(News::Unready).await {
        Ok(unready) => match unready {
            None => "ready\n".into_response(),
            Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")).into_response(),
        },
        Err(response) => response,
    }
}

async fn tables(State(app): State<App>) -> Response {
    match app.view().await {
        Ok(view) => Json(view).into_response(),
        Err(response) => response,
    }
}

async fn explained(State(app): State<App>, Query(asked): Query<Vec<(String, String)>>) -> Response {
    let view = match app.view().await {
        Ok(view) => view,
        Err(response) => return response,
    };
    let hour = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() / 3600);
    let question = Question::parse(&asked, &view, hour);
    let rng = rand::make_rng();
    match question.and_then(|question| explain(&view, &question, rng)) {
        Ok(explanation) => Json(explanation).into_response(),
        Err(problem) => {
            let status = if problem.unknown {
                StatusCode::NOT_FOUND
            } else {
                StatusCode::BAD_REQUEST
            };
            (status, Json(problem)).into_response()
        }
    }
}

#[cfg(test)]
mod tests;
