// SPDX-License-Identifier: Apache-2.0
//! Everything that is known, with one owner.
//!
//! ```text
//!  Update ── fold ──> State ── advance (levels, assumptions) ── publish ──> Snapshot
//! ```
//!
//! [`own`] is the only task that has it; the others send [`Update`]s or hold a snapshot.

pub mod budget;
pub mod clients;
pub mod cluster;
pub mod costs;
pub mod holdings;
pub mod host;
pub mod node;
mod queries;
mod replica;
pub mod view;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tracing::{info, warn};
use weir_policy::{HostId, HostState};
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, Meta, cache_shard_name, v1};

use crate::config::{self, Config};
use crate::leader::Role;
use crate::metrics::Metrics;
use crate::reports::Reported;
use crate::reports::ledger::{Ledger, Names};
use crate::snapshot::{ClientEvent, Resource, Snapshot};
use crate::sources::cache::Changes;
use crate::sources::prometheus::Answers;
use crate::sources::scrape::Scraped;
use crate::sources::{Fault, PollError, Source};
use crate::tables;
use crate::xds::standalone::{ClusterHosts, Health};
use crate::xds::types::ENDPOINTS;
use budget::Budget;
use cluster::Cluster;

/// News.
#[derive(Debug)]
pub enum Update {
    /// A configuration that checks.
    Configured(Arc<Config>),
    /// The same configuration with other hosts, because discovery found them.
    Discovered(Arc<Config>),
    /// How discovery goes.
    Asked {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// What was asked.
        source: Source,
        /// What there is to complain of in the answer.
        result: Result<Vec<String>, PollError>,
    },
    /// Discovery has a new question, and the hosts are not of its answer yet.
    Waiting {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// What is to be complained of until Consul answers.
        complaint: String,
    },
    /// One that does not; the old one stays.
    Misconfigured(config::Error),
    /// A poll of a host's metrics.
    Scraped {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// Address of the host.
        host: Arc<str>,
        /// When the poll began: figures are no younger than that.
        asked: Instant,
        /// What it brought.
        result: Result<Scraped, PollError>,
    },
    /// A poll of a host's cache contents.
    Cached {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// Address of the host.
        host: Arc<str>,
        /// When the poll began.
        asked: Instant,
        /// How often the cluster's cache contents had been dropped by then.
        drops: u64,
        /// What it brought.
        result: Result<Changes, PollError>,
        /// Told where it was more than the host may hold, and nothing that the host said was kept: the next question
        /// starts from scratch.
        refused: oneshot::Sender<()>,
    },
    /// A round of a cluster's queries to Prometheus.
    Queried {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// When the round began: figures are no younger than that.
        asked: Instant,
        /// What it brought.
        answers: Answers,
    },
    /// A proxy's counters.
    Reported(Reported),
    /// The governor of a host's node wants its row, and what follows; none where there is no such host.
    Watched {
        /// Name of the cluster.
        cluster: String,
        /// Address of the host.
        host: String,
        /// Where the rows go.
        rows: oneshot::Sender<Option<watch::Receiver<node::Row>>>,
    },
    /// What the service has on a host's node.
    Capacity {
        /// Name of the cluster.
        cluster: Arc<str>,
        /// Address of the host.
        host: Arc<str>,
        /// Thousandths of a core.
        millicores: u32,
    },
    /// A discovery stream's doings.
    Client(ClientEvent),
    /// What the leader pushes that this replica follows.
    Mirrored {
        /// Its lock index.
        index: u64,
        /// All of it.
        snapshot: Arc<Snapshot>,
    },
    /// What is wrong with the lock of the replicas; none where nothing is.
    Complained(Option<String>),
    /// Somebody wants to know whether news are taken in.
    Alive(oneshot::Sender<()>),
    /// Somebody wants to see.
    View(oneshot::Sender<view::View>),
}

/// Everything that is known.
#[derive(Debug)]
pub struct State {
    config: Arc<Config>,
    refused: Option<(config::Error, Duration)>,
    clusters: BTreeMap<String, Cluster>,
    ledger: Ledger,
    clients: clients::Board,
    metrics: Metrics,
    origin: Instant,
    epoch: u64,
    version: u64,
    snapshot: Snapshot,
    /// As last given to Envoys in standalone mode.
    endpoints: Vec<ClusterHosts>,
    configured: bool,
    /// Whether every cache has been asked once. Until then nothing is said of caches, so that a proxy which
    /// resumes after a restart keeps what it knows.
    caches_asked: bool,
    replica: replica::Replica,
    budget: Budget,
    /// The limit where the configuration has none.
    allowance: Option<usize>,
    /// What the names count that discovery streams ask for.
    names: Gauge,
    /// Whose cache contents are kept, for those who ask for them.
    contents: watch::Sender<budget::ByCluster>,
}

impl State {
    /// Nothing is known yet but the configuration. `epoch` tells this process' versions from others'.
    pub fn new(config: Arc<Config>, epoch: u64, metrics: Metrics, origin: Instant) -> Self {
        let mut state = Self {
            config: config.clone(),
            refused: None,
            clusters: BTreeMap::new(),
            ledger: Ledger::default(),
            clients: clients::Board::default(),
            metrics,
            origin,
            epoch,
            version: 0,
            snapshot: Snapshot::default(),
            endpoints: Vec::new(),
            configured: true,
            caches_asked: false,
            replica: replica::Replica::default(),
            budget: Budget::default(),
            allowance: None,
            names: Gauge::default(),
            contents: watch::Sender::default(),
        };
        state.configure(config, Duration::ZERO);
        state
    }

    /// Counts what discovery streams ask for, as `names` shows it, and has so much memory where the configuration
    /// has no limit.
    #[must_use]
    pub fn within(mut self, allowance: Option<usize>, names: Gauge) -> Self {
        (self.allowance, self.names) = (allowance, names);
        self
    }

    /// Whose cache contents are kept.
    pub fn contents(&self) -> watch::Receiver<budget::ByCluster> {
        self.contents.subscribe()
    }

    fn clock(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.origin)
    }

    fn configure(&mut self, config: Arc<Config>, now: Duration) {
        let names = self.clusters.keys().cloned();
        let gone = names.filter(|name| !config.clusters.contains_key(name));
        let gone: Vec<String> = gone.collect();
        self.metrics
            .forget_clusters(gone.iter().map(String::as_str));
        let mut hosts_gone = Vec::new();
        self.clusters
            .retain(|name, _| config.clusters.contains_key(name));
        for (name, new) in &config.clusters {
            match self.clusters.get_mut(name) {
                Some(cluster) if cluster.config == *new => {}
                Some(cluster) => {
                    let before: Vec<HostId> = cluster.hosts.values().map(|host| host.id).collect();
                    cluster.configure(new.clone());
                    let left = before.into_iter().filter(|id| !cluster.has(*id));
                    hosts_gone.extend(left.map(|id| (name.clone(), id)));
                }
                None => {
                    self.clusters
                        .insert(name.clone(), Cluster::new(new.clone()));
                }
            }
        }
        if !(gone.is_empty() && hosts_gone.is_empty()) {
            self.ledger.prune(&gone, &hosts_gone, now);
        }
        self.config = config;
        self.metrics.certificates(&self.config.certificates);
        self.budget.retain(|name| self.clusters.contains_key(name));
        for (name, cluster) in &mut self.clusters {
            // Its plan, if it has one, was just read.
            if self.budget.contents(name).dropped {
                cluster.drop_contents();
            }
        }
        self.keep_within(now);
        for (name, cluster) in self
            .clusters
            .iter()
            .filter(|(_, known)| known.built.is_some())
        {
            self.metrics.cluster(name, cluster, now);
        }
        self.configured = true;
    }

    /// Takes in news.
    pub fn fold(&mut self, update: Update, now: Instant) {
        let clock = self.clock(now);
        match update {
            Update::Configured(config) => {
                info!(clusters = config.clusters.len(), "configuration applied");
                self.metrics.config_loads("ok");
                self.refused = None;
                self.configure(config, clock);
            }
            Update::Discovered(config) => self.configure(config, clock),
            Update::Asked {
                cluster,
                source,
                result,
            } => self.asked(&cluster, source, clock, result),
            Update::Waiting { cluster, complaint } => {
                if let Some(known) = self.clusters.get_mut(&*cluster) {
                    warn!(%cluster, complaint, "Consul is asked another question");
                    known.polls.entry(Source::Consul).or_default().complaints = vec![complaint];
                }
            }
            Update::Misconfigured(error) => {
                warn!(%error, "configuration refused; the old one stays");
                self.metrics.config_loads("refused");
                self.refused = Some((error, clock));
            }
            Update::Scraped {
                cluster,
                host,
                asked,
                result,
            } => {
                let at = self.clock(asked);
                let outcome = result
                    .as_ref()
                    .map(|news| news.complaints.clone())
                    .map_err(Clone::clone);
                let Some(cluster) = self.polled(&cluster, &host, Source::Scrape, clock, outcome)
                else {
                    return;
                };
                if let (Ok(news), Some(host)) = (result, cluster.hosts.get_mut(&*host)) {
                    let observed = host::Observed {
                        figures: news.figures,
                        at,
                        delay_at: at,
                        from: host::From::Scrape,
                    };
                    let keep = cluster.config.policy.stale_after;
                    if let Some((jobs, within)) = news.left_queue {
                        host.level.counted(jobs, within, at);
                    }
                    cluster.changed |= host.observe(observed, keep);
                    cluster.changed |= host.draining != news.draining;
                    host.draining = news.draining;
                }
            }
            Update::Cached {
                cluster: name,
                host,
                drops,
                result,
                refused,
                ..
            } => {
                let contents = self.budget.contents(&name);
                // Changes to what was dropped meanwhile are changes to nothing.
                let is_kept = !contents.dropped && contents.drops == drops;
                let outcome = result.and_then(|changes| match is_kept {
                    true => self.hold(&name, &host, &changes),
                    false => Ok(()),
                });
                if matches!(&outcome, Err(error) if error.fault == Fault::TooManyKeys) {
                    // Whoever asked may have gone.
                    let _ = refused.send(());
                }
                let outcome = outcome.map(|()| Vec::new());
                self.polled(&name, &host, Source::Cache, clock, outcome);
                self.grew(&name, clock);
            }
            Update::Queried {
                cluster,
                asked,
                answers,
            } => self.queried(&cluster, self.clock(asked), &answers, clock),
            Update::Reported(reported) => self.report(&reported, clock),
            Update::Watched {
                cluster,
                host,
                rows,
            } => {
                // Whoever asked may have gone.
                let _ = rows.send(self.watch(&cluster, &host, clock));
            }
            Update::Capacity {
                cluster,
                host,
                millicores,
            } => {
                if let Some(cluster) = self.clusters.get_mut(&*cluster)
                    && let Some(host) = cluster.hosts.get_mut(&*host)
                {
                    let configured = host.config.capacity_millicores;
                    cluster.changed |= host.node.says(millicores, configured, clock);
                }
            }
            Update::Client(event) => self.clients.fold(event, clock),
            Update::Mirrored { index, snapshot } => self.mirrored(index, snapshot, clock),
            Update::Complained(complaint) => self.replica.complaint = complaint,
            Update::Alive(answer) => {
                // Whoever asked may have gone.
                let _ = answer.send(());
            }
            Update::View(answer) => {
                // Whoever asked may have gone.
                let _ = answer.send(self.view(clock));
            }
        }
    }

    /// Folds in what a host says of its cache; nothing where it is no longer configured.
    fn hold(&mut self, cluster: &str, host: &str, changes: &Changes) -> Result<(), PollError> {
        let Some(cluster) = self.clusters.get_mut(cluster) else {
            return Ok(());
        };
        let Some(id) = cluster.hosts.get(host).map(|host| host.id) else {
            return Ok(());
        };
        let cache = cluster.config.cache.as_ref();
        let limit = cache.map_or(usize::MAX, |cache| cache.max_keys);
        cluster.holdings.apply(id, changes, limit).map_err(|keys| {
            let detail = format!("{host} holds {keys} keys, the limit is {limit}: none is kept");
            PollError::new(Fault::TooManyKeys, detail)
        })
    }

    /// Notes how a poll went; none where the host is no longer configured.
    fn polled(
        &mut self,
        cluster: &str,
        host: &str,
        source: Source,
        now: Duration,
        outcome: Result<Vec<String>, PollError>,
    ) -> Option<&mut Cluster> {
        let fault = outcome.as_ref().err().map(|error| error.fault);
        self.metrics
            .polls(source.as_str(), fault.map_or("ok", Fault::as_str));
        let (cluster_name, source_name) = (cluster, source.as_str());
        let cluster = self.clusters.get_mut(cluster)?;
        let entry = cluster.hosts.get_mut(host)?;
        let was_dead = entry.is_dead();
        match outcome {
            Ok(complaints) => {
                if entry.succeeded(source, now, complaints.clone()) {
                    info!(
                        cluster = cluster_name,
                        host,
                        source = source_name,
                        ?complaints,
                        "polls succeed"
                    );
                }
            }
            Err(error) => {
                if entry.failed(source, now, error.clone()) {
                    info!(cluster = cluster_name, host, source = source_name, %error, "polls fail");
                }
            }
        }
        if entry.is_dead() != was_dead {
            cluster.changed = true;
            let suspects_itself = cluster.suspects_itself();
            info!(
                cluster = cluster_name,
                host,
                dead = cluster.dead(),
                suspects_itself,
                "hosts that refuse connections"
            );
        }
        Some(cluster)
    }

    /// Notes how discovery goes.
    fn asked(
        &mut self,
        name: &str,
        source: Source,
        now: Duration,
        result: Result<Vec<String>, PollError>,
    ) {
        let fault = result.as_ref().err().map(|error| error.fault);
        let outcome = fault.map_or("ok", Fault::as_str);
        self.metrics.polls(source.as_str(), outcome);
        let Some(cluster) = self.clusters.get_mut(name) else {
            return;
        };
        let (polls, source) = (cluster.polls.entry(source).or_default(), source.as_str());
        match result {
            Ok(complaints) if complaints.is_empty() => {
                if polls.succeeded(now, complaints) {
                    info!(cluster = name, source, "discovery succeeds");
                }
            }
            Ok(complaints) => {
                if polls.succeeded(now, complaints.clone()) {
                    warn!(cluster = name, source, ?complaints, "discovery complains");
                }
            }
            Err(error) => {
                let what = polls.failing.as_ref().map(|(error, _)| error.to_string());
                if polls.failed(now, error.clone()) || what != Some(error.to_string()) {
                    warn!(cluster = name, source, %error, "discovery fails; what was found last stays");
                }
            }
        }
    }

    fn report(&mut self, Reported { report, caps }: &Reported, now: Duration) {
        let limits = &self.config.reports;
        let mut folded = self.ledger.fold(report, &self.clusters, now, limits);
        for (name, class) in caps {
            if let Some(news) = folded.news.get_mut(name) {
                news.cap(*class);
            }
        }
        self.metrics.report(&folded);
        if let Some(refused) = folded.warning {
            warn!(proxy = report.proxy, %refused, "what a proxy reports is not counted");
        }
        for (name, mut news) in folded.news {
            let offered = news.offered.values();
            let offered = offered.fold(0, |sum: u64, count| sum.saturating_add(*count));
            self.budget.used(&name, offered, now);
            if self.budget.contents(&name).dropped {
                news.assignments.clear();
                news.spent.clear();
            }
            if let Some(cluster) = self.clusters.get_mut(&name) {
                let (proxy, ignores) = (&report.proxy, ignores(report, &name));
                if cluster.heeds(proxy, ignores, now) {
                    match ignores {
                        true => warn!(cluster = name, proxy, "Envoy ignores the filter's choices"),
                        false => info!(cluster = name, proxy, "Envoy heeds the filter's choices"),
                    }
                }
                cluster.report(&report.proxy, news, now);
            }
            self.grew(&name, now);
        }
    }

    /// A cluster's cache contents have grown: where that is too much, some are dropped at once.
    fn grew(&mut self, name: &str, now: Duration) {
        if let Some(cluster) = self.clusters.get(name) {
            self.budget.holds(name, cluster.contents_bytes());
        }
        if self.budget.is_over() {
            self.keep_within(now);
        }
    }

    /// Drops cache contents as long as there are too many, and takes them back where there is room again.
    fn keep_within(&mut self, now: Duration) {
        let limit = self.config.memory_limit.or(self.allowance);
        let names = usize::try_from(self.names.get()).unwrap_or(0);
        self.budget.set(limit, names);
        for (name, cluster) in &self.clusters {
            self.budget.holds(name, cluster.contents_bytes());
        }
        let settled = self.budget.settle(now);
        for (name, contents) in &settled {
            let Some(cluster) = self.clusters.get_mut(name) else {
                continue;
            };
            let bytes = cluster.contents_bytes();
            if contents.dropped {
                warn!(
                    cluster = name,
                    bytes, limit, "cache contents are dropped: memory.limit is reached"
                );
                cluster.drop_contents();
            } else {
                info!(cluster = name, "cache contents are kept again");
                cluster.keep_contents();
            }
            self.metrics.contents(name, *contents);
        }
        let contents = self.budget.by_cluster();
        self.contents.send_if_modified(|told| {
            let is_news = *told != contents;
            *told = contents;
            is_news
        });
        self.metrics.memory(limit, self.budget.counted());
    }

    fn watch(
        &mut self,
        cluster: &str,
        host: &str,
        now: Duration,
    ) -> Option<watch::Receiver<node::Row>> {
        let cluster = self.clusters.get_mut(cluster)?;
        let row = cluster.row_of(cluster.hosts.get(host)?, now, self.origin);
        Some(cluster.hosts.get_mut(host)?.node.watch(row))
    }

    /// Does what only time brings about.
    pub fn advance(&mut self, now: Instant) {
        let now = self.clock(now);
        self.ledger.forget(now, &self.config.reports);
        if !self.replica.role.leads() {
            return;
        }
        for cluster in self.clusters.values_mut() {
            cluster.step_levels(now);
            cluster.holdings.expire(now);
            cluster.settle_nodes(now, self.config.reports.forget_after);
            cluster.forget_ignoring(now, self.config.reports.forget_after);
        }
        self.keep_within(now);
    }

    /// Builds what is due; none where nothing is.
    pub fn publish(&mut self, now: Instant) -> Option<Arc<Snapshot>> {
        let now = self.clock(now);
        if !self.replica.role.leads() {
            return self.publish_mirrored(now);
        }
        self.caches_asked |= self
            .clusters
            .values()
            .all(|cluster| cluster.caches_asked(now));
        let caches_asked = self.caches_asked;
        let due = |cluster: &Cluster| {
            let shards_due = caches_asked && cluster.holdings.is_changed(now);
            cluster.is_due(now) || shards_due && !cluster.is_unknown(now)
        };
        if !self.configured && !self.clusters.values().any(due) {
            return None;
        }
        let mut tables = take(&mut self.snapshot, HOST_TABLE_TYPE);
        let shards_known = caches_asked || self.snapshot.of_type(CACHE_SHARD_TYPE).is_some();
        let mut shards = take(&mut self.snapshot, CACHE_SHARD_TYPE);
        if self.configured {
            tables.retain(|name, _| self.clusters.contains_key(name));
            let names = self
                .clusters
                .iter()
                .flat_map(|(name, cluster)| shard_names(name, cluster));
            let names: std::collections::BTreeSet<String> = names.collect();
            shards.retain(|name, _| names.contains(name));
        }
        let proxies = u32::try_from(self.ledger.proxies()).unwrap_or(u32::MAX);
        let (epoch, version) = (self.epoch, &mut self.version);
        let mut next = || {
            *version += 1;
            Meta {
                epoch,
                version: *version,
            }
        };
        for (name, cluster) in &mut self.clusters {
            let count = cluster.holdings.shards();
            let is_unknown = cluster.is_unknown(now);
            self.metrics.missing(name, is_unknown);
            if is_unknown {
                cluster.wait_for_hosts(now);
            }
            if is_unknown || cluster.resumes() {
                // Proxies keep the table and the shards that they have.
                tables.entry(name.clone()).or_insert_with(Resource::unknown);
                for name in shard_names(name, cluster) {
                    shards.entry(name).or_insert_with(Resource::unknown);
                }
            }
            let changed = if caches_asked && !is_unknown {
                cluster.holdings.take_changed(now)
            } else {
                Vec::new()
            };
            for shard in changed {
                let meta = next();
                let message = tables::cache_shard(&cluster.holdings, &cluster.costs, shard, meta);
                let resource = tables::resource(meta, &message);
                let (bytes, rate) = (resource.body.len(), self.config.cache_bytes_per_second);
                cluster.holdings.rest(shard, now, bytes, rate);
                shards.insert(cache_shard_name(name, count, shard), resource);
                self.metrics.published(name, "cache_shard");
            }
            if cluster.is_due(now) {
                cluster.proxies = proxies;
                let meta = next();
                let unix_ms = unix_ms();
                let message = tables::host_table(name, cluster, meta, now, unix_ms);
                tables.insert(name.clone(), tables::resource(meta, &message));
                cluster.was_built(now, self.origin);
                tell_panic(name, cluster);
                self.metrics.published(name, "host_table");
                self.metrics.built(name, unix_ms);
                self.metrics.cluster(name, cluster, now);
            }
        }
        self.snapshot
            .resources
            .insert(HOST_TABLE_TYPE, Arc::new(tables));
        if shards_known {
            self.snapshot
                .resources
                .insert(CACHE_SHARD_TYPE, Arc::new(shards));
        }
        self.publish_standalone(now);
        self.metrics.proxies(&self.ledger, now);
        self.configured = false;
        Some(Arc::new(self.snapshot.clone()))
    }

    fn publish_standalone(&mut self, now: Duration) {
        let Some(standalone) = &self.config.standalone else {
            self.snapshot
                .resources
                .retain(|kind, _| [HOST_TABLE_TYPE, CACHE_SHARD_TYPE].contains(kind));
            return;
        };
        let clusters = self.clusters.iter();
        let clusters: Vec<ClusterHosts> = clusters
            .filter(|(_, cluster)| !cluster.is_unknown(now))
            .map(|(name, cluster)| endpoints(name, cluster))
            .collect();
        if self.configured || clusters != self.endpoints {
            let mut resources = standalone.resources(&clusters);
            let endpoints = resources.entry(ENDPOINTS).or_default();
            for (name, _) in self
                .clusters
                .iter()
                .filter(|(_, known)| known.is_unknown(now))
            {
                let last = self.snapshot.get(ENDPOINTS, name).cloned();
                let last = last.unwrap_or_else(Resource::unknown);
                Arc::make_mut(endpoints).insert(name.clone(), last);
            }
            self.snapshot.resources.extend(resources);
            self.endpoints = clusters;
        }
    }
}

/// Whether a worker of the proxy says that Envoy sends requests elsewhere than the filter says.
fn ignores(report: &v1::Report, cluster: &str) -> bool {
    let records = report.records.iter().flat_map(|record| &record.clusters);
    let mut of_cluster = records.filter(|record| record.cluster == cluster);
    of_cluster.any(|record| record.choices_ignored)
}

/// Says once that few hosts are left, and once that enough are.
fn tell_panic(name: &str, cluster: &mut Cluster) {
    let panics = cluster.panics();
    if cluster.panicked != panics {
        cluster.panicked = panics;
        match panics {
            true => warn!(
                cluster = name,
                "few hosts are up, so those that drain are chosen as well"
            ),
            false => info!(cluster = name, "enough hosts are up again"),
        }
    }
}

impl Names for BTreeMap<String, Cluster> {
    fn has_cluster(&self, name: &str) -> bool {
        self.contains_key(name)
    }

    fn has_hosts(&self, cluster: &str) -> bool {
        self.get(cluster)
            .is_some_and(|cluster| !cluster.hosts.is_empty())
    }

    fn has_host(&self, cluster: &str, address: &str) -> bool {
        self.get(cluster)
            .is_some_and(|cluster| cluster.hosts.contains_key(address))
    }
}

/// The time of day as sidecars and providers tell it.
fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_millis() as u64)
}

fn take(snapshot: &mut Snapshot, kind: &'static str) -> BTreeMap<String, Resource> {
    snapshot
        .resources
        .remove(kind)
        .map(Arc::unwrap_or_clone)
        .unwrap_or_default()
}

fn shard_names<'a>(name: &'a str, cluster: &Cluster) -> impl Iterator<Item = String> + use<'a> {
    let shards = cluster.holdings.shards();
    (0..shards).map(move |shard| cache_shard_name(name, shards, shard))
}

fn endpoints(name: &str, cluster: &Cluster) -> ClusterHosts {
    let suspects_itself = cluster.suspects_itself();
    let health = |host| match cluster.state_of(host, suspects_itself) {
        HostState::Up => Health::Up,
        HostState::Draining => Health::Draining,
        HostState::Down => Health::Down,
    };
    let address = |host: &host::Host| host.config.address.parse::<SocketAddr>().ok();
    let hosts = cluster
        .hosts
        .values()
        .filter_map(|host| Some((address(host)?, health(host))));
    ClusterHosts {
        name: name.to_owned(),
        hosts: hosts.collect(),
    }
}

/// Few enough that the next table does not wait for them.
const EVENTS_AT_ONCE: usize = 256;

/// Owns the state until `shutdown` or until nobody sends news.
pub async fn own(
    mut state: State,
    mut updates: mpsc::Receiver<Update>,
    mut events: mpsc::Receiver<ClientEvent>,
    snapshots: watch::Sender<Arc<Snapshot>>,
    mut roles: watch::Receiver<Role>,
    shutdown: CancellationToken,
) {
    state.take_role(roles.borrow_and_update().clone(), Instant::now());
    let stopped = shutdown.cancelled();
    let tick = tokio::time::sleep(Duration::ZERO);
    tokio::pin!(stopped, tick);
    let mut batch = Vec::new();
    loop {
        tokio::select! {
            // In this order: no flood of news keeps tables from being built.
            biased;
            () = &mut stopped => return,
            Ok(()) = roles.changed() => {
                let role = roles.borrow_and_update().clone();
                state.take_role(role, Instant::now());
            }
            () = &mut tick => {
                let now = Instant::now();
                state.advance(now);
                if let Some(snapshot) = state.publish(now) {
                    snapshots.send_replace(snapshot);
                }
                tick.as_mut().reset(now + state.config.publish);
            }
            // Every sidecar answers every table, so they come by the thousand.
            1.. = events.recv_many(&mut batch, EVENTS_AT_ONCE) => {
                let now = Instant::now();
                for event in batch.drain(..) {
                    state.fold(Update::Client(event), now);
                }
            }
            update = updates.recv() => match update {
                Some(update) => state.fold(update, Instant::now()),
                None => return,
            },
        }
    }
}

#[cfg(test)]
mod tests;
