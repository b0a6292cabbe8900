// SPDX-License-Identifier: Apache-2.0
//! What can be asked over HTTP: `/metrics`, `/ready`, `/state`. Read only.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use hyper::server::conn::http1;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use prometheus_client::encoding::text::encode;
use prometheus_client::registry::Registry;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::book::{Book, CoreBook, Shared, ZoneBook};

const INDEX: &str = "weir-governor\n\n\
    /metrics  Prometheus text\n\
    /ready    200 while every core that is online is governed\n\
    /state    what each core does, as JSON\n";

/// What handlers share.
#[derive(Clone, Debug)]
pub struct App {
    book: Shared,
    registry: Arc<Registry>,
    functions: Arc<[(u8, String)]>,
}

impl App {
    /// Shows the book, with these names of functions.
    pub fn new(book: Shared, functions: Vec<(u8, String)>) -> Self {
        Self {
            registry: Arc::new(crate::metrics::registry(book.clone())),
            book,
            functions: functions.into(),
        }
    }
}

/// What `/state` says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct View {
    /// By number.
    pub cores: Vec<CoreView>,
    /// Decisions, and how many of them were late.
    pub ticks: u64,
    /// See `ticks_late` of the metrics.
    pub ticks_late: u64,
    /// Until the next decision.
    pub sleep_ms: f64,
    /// Lanes with an owner.
    pub lanes: u32,
    /// Events read.
    pub events: u64,
    /// Events that were overwritten.
    pub events_lost: u64,
    /// What producers said that cannot be.
    pub lies: u64,
    /// The service's latency; null while nothing is measured.
    pub tail_ms: Option<f64>,
    /// Energy, zone by zone; zones contain one another.
    pub zones: Vec<ZoneBook>,
}

/// One core.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CoreView {
    /// As the kernel counts.
    pub core: u32,
    /// Whether it is there.
    pub online: bool,
    /// Whether plans are followed.
    pub governed: bool,
    /// What was written last.
    pub mhz: Option<u32>,
    /// Of the policy's ladder.
    pub rung: usize,
    /// Share of time not idle.
    pub busy: f64,
    /// Hot functions that run, with the time since they were entered.
    pub hot: Vec<HotView>,
    /// Changes of the rung.
    pub transitions: u64,
    /// Writes that failed.
    pub write_errors: u64,
    /// Times that another program wrote.
    pub foreign_writes: u64,
}

/// A hot function that runs.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct HotView {
    /// As configured.
    pub function: String,
    /// Since it was entered.
    pub ms: f64,
}

impl View {
    fn new(book: &Book, functions: &[(u8, String)]) -> Self {
        let events = &book.events;
        let core = |core: &CoreBook| CoreView {
            core: core.number,
            online: core.status.online,
            governed: core.status.governed && core.status.online,
            mhz: core.status.khz.map(|khz| khz.0 / 1000),
            rung: core.rung,
            busy: core.busy,
            hot: hot(book, core, functions),
            transitions: core.transitions,
            write_errors: core.status.write_errors,
            foreign_writes: core.status.foreign_writes,
        };
        Self {
            cores: book.cores.iter().map(core).collect(),
            ticks: book.ticks,
            ticks_late: book.late,
            sleep_ms: book.sleep.as_secs_f64() * 1e3,
            lanes: events.lanes,
            events: events.events,
            events_lost: events.lost,
            lies: events.future + events.jumped,
            tail_ms: book.tail.map(|tail| tail.latency.as_secs_f64() * 1e3),
            zones: book.zones.clone(),
        }
    }
}

fn hot(book: &Book, core: &CoreBook, functions: &[(u8, String)]) -> Vec<HotView> {
    let running = core.since.iter().enumerate();
    let running = running.filter_map(|(function, since)| Some((function, (*since)?)));
    let view = running.map(|(function, since)| {
        let named = functions
            .iter()
            .find(|(id, _)| usize::from(*id) == function);
        HotView {
            function: named.map_or(format!("function{function}"), |(_, name)| name.clone()),
            ms: book.now.since(since).as_secs_f64() * 1e3,
        }
    });
    view.collect()
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
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
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

async fn state(State(app): State<App>) -> Json<View> {
    Json(View::new(&app.book.read(), &app.functions))
}
