// SPDX-License-Identifier: Apache-2.0
//! Figures of all hosts of a cluster from a Prometheus server that reads them already.
//!
//! ```text
//!  one query a figure, side by side ── Answers ──> state ── gather (label → host) ──> figures, complaints
//! ```
//! Which hosts there are, the state knows; so the task asks and the state takes the answers apart.

use std::sync::Arc;

use http::HeaderMap;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;
use tracing::error;
use weir_fleet::Update;
use weir_fleet::poll::{Fault, PollError};
use weir_fleet::prometheus::Answers;
use weir_promql::{Answer, Refused};

use super::Ticker;
use crate::client::{Client, Limits};
use crate::config::Prometheus;
use crate::news::News;

/// Twice the queues of 40,000 hosts in two classes, each series with 300 bytes of labels.
const MAX_BYTES: usize = 48 << 20;

/// Asks until dropped.
pub async fn run(cluster: Arc<str>, settings: Prometheus, updates: mpsc::Sender<News>) {
    let client = match Client::new(&settings.server) {
        Ok(client) => client,
        Err(reason) => {
            // It was tried when the configuration was checked.
            error!(reason, "no figures from Prometheus");
            return;
        }
    };
    let mut ticker = Ticker::new(settings.interval);
    loop {
        ticker.tick().await;
        let asked = Instant::now();
        let update = Update::Queried {
            cluster: cluster.clone(),
            asked: asked.into_std(),
            answers: ask(&client, &settings).await,
        };
        if updates.send(update.into()).await.is_err() {
            return;
        }
    }
}

/// One round of queries.
pub(super) async fn ask(client: &Client, settings: &Prometheus) -> Answers {
    let limits = Limits {
        timeout: settings.timeout,
        max_bytes: MAX_BYTES,
    };
    let mut queries = JoinSet::new();
    for (figure, query) in &settings.queries {
        let (figure, client) = (*figure, client.clone());
        let path = weir_promql::path("", query);
        queries.spawn(async move { (figure, answer(&client, &path, limits).await) });
    }
    queries.join_all().await.into_iter().collect()
}

async fn answer(client: &Client, path: &str, limits: Limits) -> Result<Answer, PollError> {
    let answer = client.get(path, HeaderMap::new(), limits).await?;
    let read = weir_promql::read(&answer.body);
    if let Err(Refused::Error(reason)) = read {
        // The server's own words say more than its status.
        return Err(PollError::new(Fault::BadStatus, reason));
    }
    answer.good()?;
    read.map_err(|refused| PollError::new(Fault::BadBody, refused))
}

#[cfg(test)]
mod tests;
