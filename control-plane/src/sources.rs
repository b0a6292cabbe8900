// SPDX-License-Identifier: Apache-2.0
//! Where news comes from.
//!
//! ```text
//!  file ──── configuration, hosts ──┐
//!  registry ─── hosts ─ membership ─┤ (decides which hosts the others ask)
//!  scrape ── figures of a host ─────┼──> News ──> owner
//!  cache ─── keys of a host ────────┤
//!  kv_events ─ the same, told ──────┤ (engines of language models)
//!  prometheus ─ figures of all ─────┤
//!  nodes ─── capacity of a host ────┘ (its node calls, and is told the host's row)
//! ```
//!
//! Scrape and cache poll: each host has one task a source; Prometheus is asked by one task a cluster. A poll never overlaps the next of its task, has a time-out and a limit
//! on the body, and starts at its own jittered time. What a poll fails with is news as well: the state
//! keeps the last good figures and lets them age.

pub mod cache;
pub mod consul;
pub mod discovery;
pub mod dns;
pub mod file;
pub mod floor;
pub mod kubernetes;
pub mod kv_events;
pub mod membership;
pub mod nodes;
pub mod probe;
pub mod prometheus;
mod running;
pub mod scrape;

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use rand::RngExt;
use running::{LOOK_EVERY, Running};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument;
use weir_fleet::budget::{ByCluster, Contents};
use weir_fleet::poll::{PollError, Source};
use weir_fleet::role::Role;

use crate::client::{self, fetch};
use crate::config::{Config, KvEvents, Poll, Prometheus, Scrape};
use crate::metrics;
use crate::news::News;

/// Start times of the polls of one task.
#[derive(Debug)]
pub struct Ticker {
    interval: Duration,
    next: Instant,
}

impl Ticker {
    /// Share of the interval by which a poll may be early or late, so that fleets do not fall into step.
    const JITTER: f64 = 0.1;

    /// The first tick comes within a quarter of the interval.
    pub fn new(interval: Duration) -> Self {
        let first = interval.mul_f64(rand::rng().random_range(0.0..0.25));
        Self {
            interval,
            next: Instant::now() + first,
        }
    }

    /// Waits for the next tick. A poll that took longer than the interval is followed at once by one tick,
    /// not by all that were missed.
    pub async fn tick(&mut self) {
        tokio::time::sleep_until(self.next).await;
        let factor = 1.0 + rand::rng().random_range(-Self::JITTER..Self::JITTER);
        self.next = Instant::now() + self.interval.mul_f64(factor);
    }
}

/// What one task asks; a change of any of it makes a new task.
#[derive(Clone, Debug, PartialEq)]
enum Job {
    Scrape {
        at: String,
        with: Box<Scrape>,
    },
    Cache {
        at: String,
        with: crate::config::Cache,
    },
    KvEvents {
        at: IpAddr,
        with: KvEvents,
    },
    Prometheus(Prometheus),
}

/// Cluster and host; without a host, the whole cluster.
type Key = (String, String, Source);

/// Keeps one task a host and source (of Prometheus one a cluster), as the newest configuration has them, until that channel closes.
/// Only who leads asks.
pub async fn supervise(
    mut configs: watch::Receiver<Arc<Config>>,
    mut roles: watch::Receiver<Role>,
    contents: watch::Receiver<ByCluster>,
    metrics: metrics::kv_events::KvEvents,
    updates: mpsc::Sender<News>,
) {
    let mut running: Running<Key, Job> = Running::new();
    let mut look = tokio::time::interval(LOOK_EVERY);
    let client = fetch::Client::new();
    loop {
        let config = configs.borrow_and_update().clone();
        let wanted = match roles.borrow_and_update().leads() {
            true => jobs(&config),
            false => BTreeMap::new(),
        };
        running.keep(wanted, Job::eq, |key, job| {
            let contents = contents.clone();
            start(
                key,
                job.clone(),
                client.clone(),
                contents,
                &metrics,
                updates.clone(),
            )
        });
        loop {
            tokio::select! {
                changed = configs.changed() => match changed {
                    Ok(()) => break,
                    Err(_) => return,
                },
                Ok(()) = roles.changed() => break,
                _ = look.tick() => if running.has_ended() {
                    break;
                },
            }
        }
    }
}

fn jobs(config: &Config) -> BTreeMap<Key, Job> {
    let mut jobs = BTreeMap::new();
    for (name, cluster) in &config.clusters {
        if let Some(prometheus) = &cluster.prometheus {
            let key = (name.clone(), String::new(), Source::Prometheus);
            jobs.insert(key, Job::Prometheus(prometheus.clone()));
        }
        for host in &cluster.hosts {
            let key = |source| (name.clone(), host.address.clone(), source);
            if let Some(with) = &cluster.scrape {
                let at = host.metrics_address.clone();
                jobs.insert(
                    key(Source::Scrape),
                    Job::Scrape {
                        at,
                        with: Box::new(with.clone()),
                    },
                );
            }
            // Of what is no address, nobody hears: it was looked at when the configuration was checked.
            let address = host.cache_address.parse::<SocketAddr>();
            if let (Some(with), Ok(address)) = (cluster.heard_events(), address) {
                let (at, with) = (address.ip(), with.of_host_at(address.port()));
                jobs.insert(key(Source::KvEvents), Job::KvEvents { at, with });
            }
            if let Some(with) = cluster.asked_cache() {
                let at = host.cache_address.clone();
                jobs.insert(
                    key(Source::Cache),
                    Job::Cache {
                        at,
                        with: with.clone(),
                    },
                );
            }
        }
    }
    jobs
}

fn start(
    key: &Key,
    job: Job,
    client: fetch::Client,
    contents: watch::Receiver<ByCluster>,
    metrics: &metrics::kv_events::KvEvents,
    updates: mpsc::Sender<News>,
) -> JoinHandle<()> {
    let (cluster, host, source) = key.clone();
    let span = tracing::info_span!("poll", source = source.as_str(), %cluster, %host);
    let target = |way| Target {
        cluster: cluster.as_str().into(),
        host: host.into(),
        way,
        contents: contents.clone(),
        updates: updates.clone(),
    };
    match job {
        Job::Scrape { at, with } => match Way::to(&at, &with.poll, client) {
            Ok(way) => tokio::spawn(scrape::run(target(way), at, *with).instrument(span)),
            Err(reason) => tokio::spawn(unasked(reason).instrument(span)),
        },
        Job::Cache { at, with } => match Way::to(&at, &with.poll, client) {
            Ok(way) => tokio::spawn(cache::run(target(way), at, with).instrument(span)),
            Err(reason) => tokio::spawn(unasked(reason).instrument(span)),
        },
        Job::KvEvents { at, with } => {
            let way = Way::Plain(client.into());
            // It takes the host's series with it: no other source of the host has one.
            let target = target(way);
            let told = metrics.of(&cluster, &target.host);
            tokio::spawn(kv_events::run(target, at, with, told).instrument(span))
        }
        Job::Prometheus(with) => {
            let asks = prometheus::run(cluster.as_str().into(), with, updates);
            tokio::spawn(asks.instrument(span))
        }
    }
}

/// It was tried when the configuration was checked.
async fn unasked(reason: String) {
    tracing::error!(reason, "a host is not asked");
}

/// How a host is asked.
#[derive(Clone, Debug)]
pub enum Way {
    /// In the clear, by connections that all such polls share.
    Plain(Box<fetch::Client>),
    /// By HTTPS.
    Tls(client::Client),
}

impl Way {
    /// To the host at `at`. The error is about certificates, and was heard when the configuration was checked.
    fn to(at: &str, poll: &Poll, client: fetch::Client) -> Result<Self, String> {
        match &poll.tls {
            None => Ok(Self::Plain(client.into())),
            Some(tls) => client::Client::of_host(at, tls).map(Self::Tls),
        }
    }

    /// One poll: time-out over everything, body limit.
    async fn fetch(&self, at: &str, path: &str, poll: &Poll) -> Result<bytes::Bytes, PollError> {
        let (timeout, max_bytes) = (poll.timeout, poll.max_bytes);
        match self {
            Self::Plain(client) => {
                let answer = client.get(at, path, max_bytes);
                let question = client::Question::new("GET", at, path);
                question.answered(timeout, answer).await
            }
            Self::Tls(client) => {
                let limits = client::Limits { timeout, max_bytes };
                client.get(path, HeaderMap::new(), limits).await?.good()
            }
        }
    }
}

/// Whom a task asks about, and whom it tells.
#[derive(Clone, Debug)]
pub struct Target {
    /// Name of the cluster.
    pub cluster: Arc<str>,
    /// Address of the host as the table has it.
    pub host: Arc<str>,
    /// How.
    pub way: Way,
    /// Whose cache contents are kept.
    pub contents: watch::Receiver<ByCluster>,
    /// To the state.
    pub updates: mpsc::Sender<News>,
}

impl Target {
    /// Whether the cluster's cache contents are kept.
    fn contents(&self) -> Contents {
        let contents = self.contents.borrow();
        contents.get(&*self.cluster).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
