// SPDX-License-Identifier: Apache-2.0
//! The fleet each second, for all who read `/events` together, and each five seconds for [`Past`].
//!
//! ```text
//!  owner <── News::Glance ── run (each second, if anybody reads) ── frame (watch) ──> readers, 16 at most
//!                             └── each 5 s, always ──> Past ──> /past
//! ```
//! A reader that is slow misses frames: it is given the newest when it can take one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use serde::Serialize;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::time::MissedTickBehavior;
use tokio_stream::StreamExt;
use tokio_stream::wrappers::WatchStream;
use tokio_util::sync::CancellationToken;
use weir_fleet::view::glance::{Glance, Most};
use weir_pages::Lasts;

use super::past::{self, Past};
use crate::metrics::{Metrics, Traffic};
use crate::news::News;

/// Between two events.
const EVERY: Duration = Duration::from_secs(1);
/// At a time. Each takes a connection for as long as it likes, and a frame of at most 0.5 MB in its own time.
const MOST_READERS: usize = 16;
/// The page draws no more, and a frame of them is 0.4 MB.
const MOST: Most = Most {
    hosts: past::MOST_HOSTS,
    sidecars: 500,
};

/// What readers are given.
#[derive(Clone, Debug)]
pub(super) struct Events {
    frames: watch::Receiver<Bytes>,
    places: Arc<Semaphore>,
    past: Arc<Mutex<Past>>,
}

/// The other end: the one task that asks.
#[derive(Debug)]
pub(super) struct Clock {
    frames: watch::Sender<Bytes>,
    places: Arc<Semaphore>,
    past: Arc<Mutex<Past>>,
    updates: mpsc::Sender<News>,
    metrics: Metrics,
}

/// An event.
#[derive(Debug, Serialize)]
struct Frame<'a> {
    unix_ms: u64,
    /// Of this program.
    version: &'static str,
    #[serde(flatten)]
    glance: &'a Glance,
    /// By cluster.
    traffic: &'a BTreeMap<String, Traffic>,
}

/// Both ends.
pub(super) fn ends(updates: mpsc::Sender<News>, metrics: Metrics) -> (Events, Clock) {
    let (frames, newest) = watch::channel(Bytes::new());
    let events = Events {
        frames: newest,
        places: Arc::new(Semaphore::new(MOST_READERS)),
        past: Arc::default(),
    };
    let clock = Clock {
        frames,
        places: events.places.clone(),
        past: events.past.clone(),
        updates,
        metrics,
    };
    (events, clock)
}

impl Clock {
    /// Ends with `shutdown`, and the readers with it.
    pub(super) async fn run(self, shutdown: CancellationToken) {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut tick = 0;
        let seconds_a_row = past::EVERY.as_secs();
        let each_tick = async {
            loop {
                ticks.tick().await;
                let (is_read, is_due) = (self.is_read(), tick % seconds_a_row == 0);
                tick += 1;
                if (is_read || is_due) && !self.tick(is_read, is_due).await {
                    return;
                }
            }
        };
        tokio::select! {
            () = shutdown.cancelled() => {}
            () = each_tick => {}
        }
    }

    fn is_read(&self) -> bool {
        self.places.available_permits() < MOST_READERS
    }

    /// Asks once. False if nobody is left to ask.
    async fn tick(&self, is_read: bool, is_due: bool) -> bool {
        let most = Most {
            sidecars: if is_read { MOST.sidecars } else { 0 },
            ..MOST
        };
        let question = |answer| News::Glance(most, answer);
        let Some(glance) = News::ask(&self.updates, question).await else {
            return false;
        };
        let names = glance.clusters.keys();
        let traffic = names.map(|name| (name.clone(), self.metrics.traffic(name)));
        let traffic = traffic.collect();
        let unix_ms = SystemTime::now().duration_since(UNIX_EPOCH);
        let unix_ms = unix_ms.map_or(0, |since| since.as_millis() as u64);
        if is_due {
            let mut past = self.past.lock().unwrap_or_else(PoisonError::into_inner);
            past.record(&glance, &traffic, unix_ms);
        }
        if is_read {
            let frame = Frame {
                unix_ms,
                version: env!("CARGO_PKG_VERSION"),
                glance: &glance,
                traffic: &traffic,
            };
            // It has no map whose keys are not strings.
            let json = serde_json::to_string(&frame).unwrap_or_default();
            let frame = format!("retry: 2000\ndata: {json}\n\n");
            self.frames.send_replace(frame.into());
        }
        true
    }
}

/// `/events`.
pub(super) async fn events(State(events): State<Events>) -> Response {
    let Ok(place) = events.places.clone().try_acquire_owned() else {
        let reason =
            format!("{MOST_READERS} read already, which is the most; /tables has it all\n");
        return (StatusCode::SERVICE_UNAVAILABLE, reason).into_response();
    };
    let mut frames = events.frames;
    // The last one is of when somebody read last.
    frames.mark_unchanged();
    let frames = WatchStream::from_changes(frames).map(move |frame| {
        // It is given back when the reader goes.
        let _ = &place;
        Ok::<_, Infallible>(frame)
    });
    let headers = [
        (header::CONTENT_TYPE, "text/event-stream"),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, Extension(Lasts), Body::from_stream(frames)).into_response()
}

/// `/past`.
pub(super) async fn past(State(events): State<Events>) -> Response {
    let encoded = tokio::task::spawn_blocking(move || {
        let mut past = events.past.lock().unwrap_or_else(PoisonError::into_inner);
        past.json()
    });
    match encoded.await {
        Ok(json) => ([(header::CONTENT_TYPE, "application/json")], json).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

#[cfg(test)]
mod tests;
