// SPDX-License-Identifier: Apache-2.0
//! EMULATED hosts: pages whose figures change by the clock, each at its own moment of the second.
//!
//! The figure of jobs in progress is the number of the change, so that whoever is told of it can be asked when it was
//! so and when it was first read.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use axum::Router;
use axum::extract::Query;
use axum::routing::get;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::fleet::page::{Figures, page};

/// Between two changes of a host.
const EVERY: Duration = Duration::from_secs(1);

/// All of them. They end with the runtime that they were started in.
pub(crate) struct Hosts {
    pub(crate) addresses: Vec<SocketAddr>,
    pub(crate) history: Arc<History>,
}

/// When what was so, by host.
#[derive(Default)]
pub(crate) struct History(HashMap<String, Arc<Host>>);

/// How old news is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Age {
    /// Since the host changed.
    pub(crate) changed: Duration,
    /// Since its page was first read with it.
    pub(crate) read: Duration,
}

struct Host {
    number: u32,
    began: Instant,
    keys: u64,
    /// By number of the change.
    first_read: Mutex<Vec<Instant>>,
}

/// What weir-control knows already.
#[derive(Debug, Default, Deserialize)]
struct Known {
    since: Option<u64>,
    epoch: Option<u64>,
}

impl Hosts {
    /// Starts so many, with so many keys in the cache of each.
    pub(crate) async fn start(count: usize, keys: u64) -> Result<Self> {
        let (mut addresses, mut history) = (Vec::new(), History::default());
        for number in 0..count {
            let listener = TcpListener::bind("127.0.0.1:0").await?;
            let address = listener.local_addr()?;
            // Spread, and not in the order of addresses, which is that of the polls' first round.
            let phase = EVERY.mul_f64((number * 73 % count) as f64 / count as f64);
            let host = Arc::new(Host {
                number: number as u32,
                began: Instant::now() - phase,
                keys,
                first_read: Mutex::default(),
            });
            let asked = Arc::clone(&host);
            addresses.push(address);
            history.0.insert(address.to_string(), Arc::clone(&host));
            let metrics = async move || asked.metrics(Instant::now());
            let cache = async move |Query(known): Query<Known>| host.cache(&known).to_string();
            let pages = Router::new()
                .route("/metrics", get(metrics))
                .route("/cache", get(cache));
            tokio::spawn(async { axum::serve(listener, pages).await });
        }
        let history = Arc::new(history);
        Ok(Self { addresses, history })
    }

    /// Writes their addresses to a file of the folder, a line each.
    pub(crate) fn list(&self, folder: &Path) -> Result<PathBuf> {
        let lines: Vec<String> = self.addresses.iter().map(SocketAddr::to_string).collect();
        let file = folder.join("hosts");
        fs::write(&file, lines.join("\n"))
            .with_context(|| format!("writing {}", file.display()))?;
        Ok(file)
    }
}

impl History {
    /// How old this change of a host is; none of a change that nobody has read.
    pub(crate) fn age(&self, host: &str, change: u32, now: Instant) -> Option<Age> {
        let host = self.0.get(host)?;
        let read = *host.first_read().get(change as usize)?;
        Some(Age {
            changed: now.saturating_duration_since(host.began + EVERY * change),
            read: now.saturating_duration_since(read),
        })
    }
}

impl Host {
    /// The number of the last change by then.
    fn change(&self, at: Instant) -> u32 {
        let since = at.saturating_duration_since(self.began);
        (since.as_nanos() / EVERY.as_nanos()) as u32
    }

    fn first_read(&self) -> std::sync::MutexGuard<'_, Vec<Instant>> {
        self.first_read
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    fn metrics(&self, now: Instant) -> String {
        let change = self.change(now);
        let mut first = self.first_read();
        // A change that nobody has read in its time is read with the next.
        let known = first.len().max(change as usize + 1);
        first.resize(known, now);
        page(Figures {
            in_progress: change,
            queued: (change + self.number) % 7,
            draining: false,
            waited: change,
        })
    }

    fn cache(&self, known: &Known) -> Value {
        let epoch = u64::from(self.number) + 1;
        let version = u64::from(self.change(Instant::now())) + 1;
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

    #[test]
    fn a_change_is_as_old_as_its_moment_and_its_first_reading_say() {
        let started = Instant::now();
        let host = Arc::new(Host {
            number: 0,
            began: started + Duration::from_millis(300),
            keys: 0,
            first_read: Mutex::default(),
        });
        let history = History([("a".to_owned(), Arc::clone(&host))].into());
        let at = |ms| started + Duration::from_millis(ms);
        assert!(host.metrics(at(2400)).contains("in_progress 2\n"));
        assert!(host.metrics(at(2900)).contains("in_progress 2\n"));
        let age = history.age("a", 2, at(3000)).unwrap();
        assert_eq!(age.changed, Duration::from_millis(700));
        assert_eq!(age.read, Duration::from_millis(600));
        assert_eq!(history.age("a", 3, at(9000)), None);
        assert_eq!(history.age("b", 0, at(9000)), None);
    }
}
