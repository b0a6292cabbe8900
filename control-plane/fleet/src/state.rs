// SPDX-License-Identifier: Apache-2.0
//! Everything that is known, with one owner.
//!
//! ```text
//!  Update ── fold ──> State ── advance (levels, assumptions) ── publish ──> Snapshot
//! ```

mod polled;
mod publish;
mod queries;
pub mod replica;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_policy::HostId;
use weir_tables::v1;

use crate::budget::Budget;
use crate::clients;
use crate::cluster::Cluster;
use crate::event::Event;
use crate::ledger::{Ledger, Names};
use crate::node;
use crate::receipts::Receipts;
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::standalone::ClusterHosts;
use crate::update::{Reported, Update};
use replica::Replica;

/// Everything that is known.
#[derive(Debug)]
pub struct State {
    settings: Arc<Settings>,
    /// Why the newest settings are not in force.
    refused: Option<String>,
    clusters: BTreeMap<String, Cluster>,
    ledger: Ledger,
    clients: clients::Board,
    origin: Instant,
    epoch: u64,
    version: u64,
    snapshot: Snapshot,
    /// As last given to Envoys in standalone mode.
    endpoints: Vec<ClusterHosts>,
    configured: bool,
    replica: Replica,
    budget: Budget,
    /// The limit where the settings have none.
    allowance: Option<usize>,
    /// Bytes of the names that discovery streams ask for.
    names: usize,
    receipts: Receipts,
    events: Vec<Event>,
}

impl State {
    /// Nothing is known yet but the settings. `epoch` tells this process' versions from others'.
    pub fn new(settings: Arc<Settings>, epoch: u64, origin: Instant) -> Self {
        let mut state = Self {
            settings: settings.clone(),
            refused: None,
            clusters: BTreeMap::new(),
            ledger: Ledger::default(),
            clients: clients::Board::default(),
            origin,
            epoch,
            version: 0,
            snapshot: Snapshot::default(),
            endpoints: Vec::new(),
            configured: true,
            replica: Replica::default(),
            budget: Budget::default(),
            allowance: None,
            names: 0,
            receipts: Receipts::default(),
            events: Vec::new(),
        };
        state.configure(settings, Duration::ZERO);
        state
    }

    /// Has so much memory where the settings have no limit.
    #[must_use]
    pub fn within(mut self, allowance: Option<usize>) -> Self {
        self.allowance = allowance;
        self
    }

    /// The settings in force.
    pub fn settings(&self) -> &Arc<Settings> {
        &self.settings
    }

    /// Why the newest settings are not in force.
    pub fn refused(&self) -> Option<&str> {
        self.refused.as_deref()
    }

    /// Clusters by name.
    pub fn clusters(&self) -> &BTreeMap<String, Cluster> {
        &self.clusters
    }

    /// Resources as they were last pushed.
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// Number of this process, or of its leadership.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Discovery streams.
    pub fn clients(&self) -> &clients::Board {
        &self.clients
    }

    /// Counters of proxies.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// Memory that is counted, and clusters whose cache contents are kept.
    pub fn budget(&self) -> &Budget {
        &self.budget
    }

    /// The newest receipts.
    pub fn receipts(&self) -> &Receipts {
        &self.receipts
    }

    /// What this process is among several.
    pub fn replica(&self) -> &Replica {
        &self.replica
    }

    /// Takes what discovery streams' names count, in bytes.
    pub fn count_names(&mut self, bytes: usize) {
        self.names = bytes;
    }

    /// A moment on the state's clock.
    pub fn clock(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.origin)
    }

    /// What the governor of a host's node is told; none where there is no such host.
    pub fn row(&self, cluster: &str, host: &str, now: Instant) -> Option<node::Row> {
        let cluster = self.clusters.get(cluster)?;
        let row = cluster.row_of(cluster.hosts.get(host)?, self.clock(now), self.origin);
        Some(row)
    }

    /// Takes in news.
    pub fn fold(&mut self, update: Update, now: Instant) -> Vec<Event> {
        let clock = self.clock(now);
        match update {
            Update::Configured(settings) => {
                self.refused = None;
                self.configure(settings, clock);
            }
            Update::Discovered(settings) => self.configure(settings, clock),
            Update::Misconfigured(reason) => self.refused = Some(reason),
            Update::Asked {
                cluster,
                source,
                result,
            } => self.discovery_answered(&cluster, source, clock, result),
            Update::Waiting { cluster, complaint } => self.discovery_waits(&cluster, complaint),
            Update::Scraped {
                cluster,
                host,
                asked,
                result,
            } => self.scraped(&cluster, &host, self.clock(asked), clock, result),
            Update::Cached {
                cluster,
                host,
                drops,
                result,
            } => self.cached(&cluster, &host, drops, clock, result),
            Update::Queried {
                cluster,
                asked,
                answers,
            } => self.queried(&cluster, self.clock(asked), &answers, clock),
            Update::Reported(reported) => self.reported(&reported, clock),
            Update::Capacity {
                cluster,
                host,
                millicores,
            } => self.capacity_told(&cluster, &host, millicores, clock),
            Update::Client(event) => self.events.extend(self.clients.fold(event, clock)),
            Update::Mirrored { index, snapshot } => self.mirrored(index, snapshot, clock),
            Update::Severed { index } => self.severed(index, clock),
            Update::Reached { index } => self.reached(index),
            Update::Complained(complaint) => self.replica.complaint = complaint,
        }
        self.taken_events()
    }

    /// Does what only time brings about.
    pub fn advance(&mut self, now: Instant) -> Vec<Event> {
        let now = self.clock(now);
        for (name, host, change) in self.ledger.bury(now, &self.settings.reports) {
            if let Some(cluster) = self.clusters.get_mut(&name) {
                cluster.moved(host, change, now);
            }
        }
        self.ledger.forget(now, &self.settings.reports);
        if self.replica.role.leads() {
            for (name, cluster) in &mut self.clusters {
                cluster.step_levels(now);
                cluster.holdings.expire(now);
                cluster.plan(now);
                let limit = self.settings.reports.forget_after;
                let silent = cluster.settle_nodes(now, limit);
                self.events
                    .extend(silent.into_iter().map(|host| Event::NodeSilent {
                        cluster: name.clone(),
                        host,
                        silent: true,
                    }));
                cluster.forget_ignoring(now, limit);
                if let Some(worse) = cluster.judge_rollout(now) {
                    let cluster = name.clone();
                    self.events.push(Event::Withdrawn { cluster, worse });
                }
            }
            self.keep_within(now);
        }
        self.taken_events()
    }

    fn taken_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    fn configure(&mut self, settings: Arc<Settings>, now: Duration) {
        let names = self.clusters.keys().cloned();
        let gone = names.filter(|name| !settings.clusters.contains_key(name));
        let gone: Vec<String> = gone.collect();
        let mut hosts_gone = Vec::new();
        self.clusters
            .retain(|name, _| settings.clusters.contains_key(name));
        for (name, new) in &settings.clusters {
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
        self.settings = settings;
        self.budget.retain(|name| self.clusters.contains_key(name));
        for (name, cluster) in &mut self.clusters {
            // Its plan, if it has one, was just read.
            if self.budget.contents(name).dropped {
                cluster.drop_contents();
            }
        }
        self.keep_within(now);
        self.configured = true;
        self.events.push(Event::Configured { gone });
    }

    fn reported(&mut self, Reported { report, caps }: &Reported, now: Duration) {
        let limits = &self.settings.reports;
        let max_vms = limits.max_vms;
        let mut folded = self.ledger.fold(report, &self.clusters, now, limits);
        for (name, class) in caps {
            if let Some(news) = folded.news.get_mut(name) {
                news.cap(*class);
            }
        }
        for (name, news) in &mut folded.news {
            let offered = news.offered.values();
            let offered = offered.fold(0, |sum: u64, count| sum.saturating_add(*count));
            self.budget.used(name, offered, now);
            let keeps_contents = !self.budget.contents(name).dropped;
            if let Some(cluster) = self.clusters.get_mut(name) {
                let ignored = ignores(report, name, max_vms);
                let proxy = &report.proxy;
                if cluster.heeds(proxy, ignored, now) {
                    self.events.push(Event::ChoicesIgnored {
                        cluster: name.clone(),
                        proxy: proxy.clone(),
                        ignored,
                    });
                }
                cluster.report(proxy, news, keeps_contents, now);
                let steered = cluster.steer_percent();
                cluster.rollout.add(proxy, news.shares, steered);
            }
            for told in std::mem::take(&mut news.receipts) {
                let steered = told.receipt.steered;
                let lasted = Duration::from_micros(told.receipt.duration_us);
                if let Some(number) = self.receipts.take(&report.proxy, name, told) {
                    self.events.push(Event::Receipt {
                        cluster: name.clone(),
                        number,
                        steered,
                        lasted,
                    });
                }
            }
            self.grew(name, now);
        }
        self.events.push(Event::Reported {
            proxy: report.proxy.clone(),
            folded,
        });
    }

    fn capacity_told(&mut self, name: &str, address: &str, millicores: u32, now: Duration) {
        if let Some(cluster) = self.clusters.get_mut(name)
            && let Some(host) = cluster.hosts.get_mut(address)
        {
            if host.node.is_silent() {
                self.events.push(Event::NodeSilent {
                    cluster: name.to_owned(),
                    host: address.to_owned(),
                    silent: false,
                });
            }
            let configured = host.config.capacity_millicores;
            cluster.changed |= host.node.says(millicores, configured, now);
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
        let limit = self.settings.memory_limit.or(self.allowance);
        self.budget.set(limit, self.names);
        for (name, cluster) in &self.clusters {
            self.budget.holds(name, cluster.contents_bytes());
        }
        for (name, contents) in self.budget.settle(now) {
            let Some(cluster) = self.clusters.get_mut(&name) else {
                continue;
            };
            let bytes = cluster.contents_bytes();
            match contents.dropped {
                true => cluster.drop_contents(),
                false => cluster.keep_contents(),
            }
            self.events.push(Event::ContentsChanged {
                cluster: name,
                bytes,
                limit,
                contents,
            });
        }
    }
}

/// Whether a worker of the proxy says that Envoy sends requests elsewhere than the filter says.
fn ignores(report: &v1::Report, cluster: &str, max_vms: usize) -> bool {
    let records = report.records.iter().take(max_vms);
    let records = records.flat_map(|record| &record.clusters);
    let mut of_cluster = records.filter(|record| record.cluster == cluster);
    of_cluster.any(|record| record.choices_ignored)
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
