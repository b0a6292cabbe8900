// SPDX-License-Identifier: Apache-2.0
//! Where news comes from.
//!
//! ```text
//!  file ──── configuration, hosts ──┐
//!  consul ── hosts ── membership ───┤ (decides which hosts the others ask)
//!  scrape ── figures of a host ─────┼──> Update ──> state
//!  cache ─── keys of a host ────────┤
//!  prometheus ─ figures of all ─────┤
//!  nodes ─── capacity of a host ────┘ (its node calls, and is told the host's row)
//! ```
//!
//! Scrape and cache poll: each host has one task a source; Prometheus is asked by one task a cluster. A poll never overlaps the next of its task, has a time-out and a limit
//! on the body, and starts at its own jittered time. What a poll fails with is news as well: the state
//! keeps the last good figures and lets them age.

pub mod cache;
pub mod client;
pub mod consul;
pub mod fetch;
pub mod file;
pub mod floor;
pub mod membership;
pub mod nodes;
pub mod prometheus;
mod running;
pub mod scrape;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use rand::RngExt;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tracing::Instrument;

use crate::config::{Config, Poll, Prometheus, Scrape};
use crate::leader::Role;
use crate::state::Update;
use crate::state::budget::{ByCluster, Contents};
use running::{LOOK_EVERY, Running};

/// What a poll was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The metrics page.
    Scrape,
    /// The cache contents.
    Cache,
    /// Which hosts a cluster has.
    Consul,
    /// The trust domain that they are in.
    ConsulRoots,
    /// A Prometheus server, asked for a whole cluster.
    Prometheus,
}

impl Source {
    /// Its name in metrics and `/tables`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Scrape => "scrape",
            Self::Cache => "cache",
            Self::Consul => "consul",
            Self::ConsulRoots => "consul_roots",
            Self::Prometheus => "prometheus",
        }
    }
}

/// What kind of failure a poll met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Nobody listens, or the connection was reset: the only fault that may mean a dead host.
    Refused,
    /// No complete answer in time.
    TimedOut,
    /// The body is over the limit.
    TooLarge,
    /// Whoever asks may not know.
    Denied,
    /// Not 200.
    BadStatus,
    /// Not what was asked for.
    BadBody,
    /// Contradicts what the host said before or was asked.
    Inconsistent,
    /// The host would hold more keys than it may.
    TooManyKeys,
    /// Anything else on the way.
    Failed,
}

impl Fault {
    /// Its name in metrics and `/tables`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::TimedOut => "timed_out",
            Self::TooLarge => "too_large",
            Self::Denied => "denied",
            Self::BadStatus => "bad_status",
            Self::BadBody => "bad_body",
            Self::Inconsistent => "inconsistent",
            Self::TooManyKeys => "too_many_keys",
            Self::Failed => "failed",
        }
    }
}

/// Characters of an error's detail.
const MOST_SHOWN: usize = 600;

/// Why a poll brought nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {detail}", fault.as_str())]
pub struct PollError {
    /// The kind.
    pub fault: Fault,
    /// The rest.
    pub detail: String,
}

impl PollError {
    /// An error of this kind, as one line of bounded length: texts that others gave may be in it.
    pub fn new(fault: Fault, detail: impl fmt::Display) -> Self {
        let detail = detail.to_string();
        let shown = detail.chars().take(MOST_SHOWN);
        Self {
            fault,
            detail: shown
                .map(|c| if c.is_control() { ' ' } else { c })
                .collect(),
        }
    }
}

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
        with: Scrape,
    },
    Cache {
        at: String,
        with: crate::config::Cache,
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
    updates: mpsc::Sender<Update>,
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
            start(key, job.clone(), client.clone(), contents, updates.clone())
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
                        with: with.clone(),
                    },
                );
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
    updates: mpsc::Sender<Update>,
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
    let way = |at: &str, poll: &Poll| match &poll.tls {
        None => Ok(Way::Plain(client.into())),
        Some(tls) => client::Client::of_host(at, tls).map(Way::Tls),
    };
    match job {
        Job::Scrape { at, with } => match way(&at, &with.poll) {
            Ok(way) => tokio::spawn(scrape::run(target(way), at, with).instrument(span)),
            Err(reason) => tokio::spawn(unasked(reason).instrument(span)),
        },
        Job::Cache { at, with } => match way(&at, &with.poll) {
            Ok(way) => tokio::spawn(cache::run(target(way), at, with).instrument(span)),
            Err(reason) => tokio::spawn(unasked(reason).instrument(span)),
        },
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
    pub updates: mpsc::Sender<Update>,
}

impl Target {
    /// Whether the cluster's cache contents are kept.
    fn contents(&self) -> Contents {
        let contents = self.contents.borrow();
        contents.get(&*self.cluster).copied().unwrap_or_default()
    }

    /// One poll: time-out over everything, body limit.
    pub async fn fetch(
        &self,
        at: &str,
        path: &str,
        poll: &Poll,
    ) -> Result<bytes::Bytes, PollError> {
        let (timeout, max_bytes) = (poll.timeout, poll.max_bytes);
        match &self.way {
            Way::Plain(client) => {
                let answer = client.get(at, path, max_bytes);
                tokio::time::timeout(timeout, answer)
                    .await
                    .unwrap_or_else(|_| Err(too_slow(timeout)))
            }
            Way::Tls(client) => {
                let limits = client::Limits { timeout, max_bytes };
                client.get(path, HeaderMap::new(), limits).await?.good()
            }
        }
    }
}

fn too_slow(limit: Duration) -> PollError {
    let limit = crate::config::show_duration(limit);
    PollError::new(
        Fault::TimedOut,
        format!("no complete answer within {limit}"),
    )
}

#[cfg(test)]
mod tests;
