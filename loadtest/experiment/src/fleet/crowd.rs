// SPDX-License-Identifier: Apache-2.0
//! All EMULATED sidecars, in a process of their own, which is asked by HTTP how they are and told to cut their
//! connections.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::Result;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use weir_filter::index::Kind;
use weir_stage::ports;
use weir_tables::Meta;
use weir_tables::discovery::DeltaDiscoveryResponse;

use crate::fleet::sidecar::Sidecar;

/// How they are.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct State {
    /// Tables that came, of all sidecars together.
    pub(crate) tables: u64,
    /// Messages with cache contents that came.
    pub(crate) shards: u64,
    /// Bytes of what was in them.
    pub(crate) bytes: u64,
    /// Reports that were sent.
    pub(crate) reports: u64,
    /// Resources that were refused.
    pub(crate) refused: u64,
    /// Times that a stream ended or could not be opened.
    pub(crate) lost: u64,
    /// Why the last one did.
    pub(crate) why: String,
    /// Tables of whoever got the fewest and the most.
    pub(crate) fewest: u64,
    pub(crate) most: u64,
    /// The newest table that anybody has, and the oldest that somebody still has.
    pub(crate) newest: Option<Build>,
    pub(crate) oldest: Option<Build>,
    /// Sidecars that have had a whole table since the connections were cut last.
    pub(crate) fresh: usize,
    /// Milliseconds from then to the last of them.
    pub(crate) fresh_ms: f64,
}

/// Which build a table is. Those of one epoch are comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct Build {
    pub(crate) epoch: u64,
    pub(crate) version: u64,
}

/// What all of them share.
pub(crate) struct Shared {
    reports: AtomicU64,
    inner: Mutex<Inner>,
}

struct Inner {
    state: State,
    era: Era,
    began: Instant,
    /// Of each sidecar, how many tables and the newest.
    tables: Vec<(u64, Option<Meta>)>,
    /// Which sidecars have had a whole table in this era. One whose connection is lost again counts once.
    fresh: Vec<bool>,
}

/// From one cut of all connections to the next.
#[derive(Clone)]
pub(crate) struct Era {
    pub(crate) number: u64,
    pub(crate) cut: CancellationToken,
}

impl Shared {
    fn new(sidecars: usize) -> Self {
        let era = Era {
            number: 0,
            cut: CancellationToken::new(),
        };
        Self {
            reports: AtomicU64::new(0),
            inner: Mutex::new(Inner {
                state: State::default(),
                era,
                began: Instant::now(),
                tables: vec![(0, None); sidecars],
                fresh: vec![false; sidecars],
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn era(&self) -> Era {
        self.lock().era.clone()
    }

    pub(crate) fn lost(&self, why: Option<anyhow::Error>) {
        let mut inner = self.lock();
        inner.state.lost += 1;
        if let Some(why) = why {
            inner.state.why = format!("{why:#}");
        }
    }

    pub(crate) fn refused(&self, resources: usize) {
        if resources > 0 {
            self.lock().state.refused += resources as u64;
        }
    }

    pub(crate) fn reported(&self) {
        self.reports.fetch_add(1, Ordering::Relaxed);
    }

    /// A whole table has come by a connection of this era.
    pub(crate) fn fresh(&self, sidecar: usize, era: u64) {
        let mut inner = self.lock();
        if inner.era.number == era
            && let Some(fresh) = inner.fresh.get_mut(sidecar)
            && !std::mem::replace(fresh, true)
        {
            inner.state.fresh += 1;
            inner.state.fresh_ms = inner.began.elapsed().as_secs_f64() * 1e3;
        }
    }

    pub(crate) fn received(
        &self,
        sidecar: usize,
        kind: Kind,
        response: &DeltaDiscoveryResponse,
        version: Option<Meta>,
    ) {
        let bodies = response
            .resources
            .iter()
            .filter_map(|one| one.resource.as_ref());
        let bytes: usize = bodies.map(|body| body.value.len()).sum();
        let mut inner = self.lock();
        inner.state.bytes += bytes as u64;
        match kind {
            Kind::Table => {
                inner.state.tables += 1;
                if let Some((tables, newest)) = inner.tables.get_mut(sidecar) {
                    (*tables, *newest) = (*tables + 1, version);
                }
            }
            Kind::Shard => inner.state.shards += 1,
        }
    }

    /// Begins an era: all connections are cut, or are about to end by themselves.
    fn begin(&self, cut: bool) {
        let mut inner = self.lock();
        let next = Era {
            number: inner.era.number + 1,
            cut: CancellationToken::new(),
        };
        let old = std::mem::replace(&mut inner.era, next);
        (inner.state.fresh, inner.state.fresh_ms) = (0, 0.0);
        inner.fresh.fill(false);
        inner.began = Instant::now();
        drop(inner);
        if cut {
            old.cut.cancel();
        }
    }

    fn state(&self) -> State {
        let inner = self.lock();
        let counts = inner.tables.iter().map(|(tables, _)| *tables);
        let build = |(_, meta): &(u64, Option<Meta>)| {
            let Meta { epoch, version } = (*meta)?;
            Some(Build { epoch, version })
        };
        let builds = || inner.tables.iter().filter_map(build);
        let began = |tables: &(u64, Option<Meta>)| tables.1.is_some();
        State {
            reports: self.reports.load(Ordering::Relaxed),
            fewest: counts.clone().min().unwrap_or(0),
            most: counts.max().unwrap_or(0),
            newest: builds().max(),
            // Whoever has none has an older one than all others.
            oldest: builds().min().filter(|_| inner.tables.iter().all(began)),
            ..inner.state.clone()
        }
    }
}

/// Plays the sidecars until the process is ended.
pub(crate) async fn serve(
    server: SocketAddr,
    sidecars: usize,
    hosts: &[String],
    requests: usize,
    ports_file: &Path,
) -> Result<()> {
    let shared = Arc::new(Shared::new(sidecars));
    let hosts = Arc::new(hosts.to_vec());
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let pages = serde_json::json!({"pages": listener.local_addr()?});
    for number in 0..sidecars {
        let sidecar = Sidecar {
            number,
            server,
            shared: Arc::clone(&shared),
            hosts: Arc::clone(&hosts),
            requests,
        };
        tokio::spawn(sidecar.run());
    }
    let (asked, cut, marked) = (Arc::clone(&shared), Arc::clone(&shared), shared);
    let router = Router::new()
        .route("/state", get(async move || Json(asked.state())))
        .route("/cut", post(async move || cut.begin(true)))
        .route("/mark", post(async move || marked.begin(false)));
    ports::write(ports_file, &pages)?;
    axum::serve(listener, router).await?;
    Ok(())
}
