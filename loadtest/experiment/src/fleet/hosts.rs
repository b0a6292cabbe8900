// SPDX-License-Identifier: Apache-2.0
//! EMULATED hosts: pages whose figures change by the clock, each at its own moment of the second.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Between two changes of a host.
const EVERY: Duration = Duration::from_secs(1);

/// Starts them in the runtime; they end with it.
pub(crate) async fn start(hosts: usize, keys: u64) -> Result<Vec<SocketAddr>> {
    let mut addresses = Vec::new();
    for number in 0..hosts {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        addresses.push(listener.local_addr()?);
        let host = Arc::new(Host {
            number: number as u64,
            // Spread, and not in the order of addresses, which is that of the polls' first round.
            started: Instant::now() - EVERY.mul_f64((number * 73 % hosts) as f64 / hosts as f64),
            keys,
        });
        let asked = Arc::clone(&host);
        let metrics = async move || asked.metrics();
        let cache = async move |Query(known): Query<Known>| host.cache(&known).to_string();
        let pages = Router::new()
            .route("/metrics", get(metrics))
            .route("/cache", get(cache));
        tokio::spawn(async { axum::serve(listener, pages).await });
    }
    Ok(addresses)
}

struct Host {
    number: u64,
    started: Instant,
    keys: u64,
}

/// What weir-control knows already.
#[derive(Debug, Default, Deserialize)]
struct Known {
    since: Option<u64>,
    epoch: Option<u64>,
}

impl Host {
    fn change(&self) -> u64 {
        self.started.elapsed().as_secs()
    }

    fn metrics(&self) -> String {
        let change = self.change();
        let waited = change as f64 * 0.01;
        format!(
            "weir_host_in_progress {change}\n\
             weir_host_queued{{priority=\"0\"}} {queued}\n\
             weir_host_queuing_delay_seconds_bucket{{le=\"+Inf\"}} {change}\n\
             weir_host_queuing_delay_seconds_sum {waited}\n\
             weir_host_queuing_delay_seconds_count {change}\n",
            queued = (change + self.number) % 7,
        )
    }

    fn cache(&self, known: &Known) -> Value {
        let epoch = self.number + 1;
        let version = self.change() + 1;
        let since = known.since.filter(|_| known.epoch == Some(epoch));
        let (added, removed) = changes(since, version, self.keys);
        let name = |key: u64| format!("key-{}-{key}", self.number);
        json!({
            "version": version,
            "epoch": epoch,
            "reset": since.is_none(),
            "added": added.map(name).collect::<Vec<_>>(),
            "removed": removed.map(name).collect::<Vec<_>>(),
        })
    }
}

/// At each version a host has the next `keys` keys: what came and what went since another version.
fn changes(
    since: Option<u64>,
    version: u64,
    keys: u64,
) -> (std::ops::Range<u64>, std::ops::Range<u64>) {
    let Some(since) = since.filter(|since| *since <= version) else {
        return (version..version + keys, 0..0);
    };
    let (old_end, end) = (since + keys, version + keys);
    (old_end.max(version)..end, since..old_end.min(version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_and_went_makes_the_new_of_the_old() {
        assert_eq!(changes(None, 5, 3), (5..8, 0..0));
        assert_eq!(changes(Some(5), 5, 3), (8..8, 5..5));
        assert_eq!(changes(Some(5), 6, 3), (8..9, 5..6));
        // Everything is new.
        assert_eq!(changes(Some(5), 20, 3), (20..23, 5..8));
    }
}
