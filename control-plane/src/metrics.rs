// SPDX-License-Identifier: Apache-2.0
//! What weir-control counts.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use weir_fleet::budget::Contents;
use weir_fleet::cluster::Cluster;
use weir_fleet::ledger::{Folded, Ledger, OUTCOMES, Refused};
use weir_fleet::planner;
use weir_fleet::role::Role;
use weir_fleet::{Event, State};
use weir_policy::{HostState, Overload, Rank};

use crate::certificate::Validity;
use crate::gate::Denials;
use crate::reports::end::End;

macro_rules! labels {
    ($($name:ident { $($label:ident: $type:ty),* })*) => { $(
        #[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
        struct $name { $($label: $type),* }
    )* };
}

/// Kinds of what is published.
const HOST_TABLE: &str = "host_table";
const CACHE_SHARD: &str = "cache_shard";

/// Why keys of a plan move.
const MOVED: [&str; 2] = ["load", "host_gone"];

labels! {
    Poll { source: &'static str, result: &'static str }
    Outcome { result: &'static str }
    Published { cluster: String, kind: &'static str }
    ClusterState { cluster: String, state: &'static str }
    OfCluster { cluster: String }
    OfHost { cluster: String, host: String }
    Requests { cluster: String, class: u8 }
    Answers { cluster: String, class: &'static str }
    Reason { reason: &'static str }
    Moves { cluster: String, reason: &'static str }
    Named { name: String }
}

mod durations;
pub(crate) mod kv_events;
#[cfg(test)]
mod reference;
mod traffic;

use durations::Durations;
pub(crate) use traffic::Traffic;

/// Counters and gauges. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct Metrics {
    polls: Family<Poll, Counter>,
    config_loads: Family<Outcome, Counter>,
    published: Family<Published, Counter>,
    built: Family<OfCluster, Gauge<f64, AtomicU64>>,
    missing: Family<OfCluster, Gauge>,
    hosts: Family<ClusterState, Gauge>,
    stale: Family<OfCluster, Gauge>,
    health_ignored: Family<OfCluster, Gauge>,
    panic: Family<OfCluster, Gauge>,
    steered: Family<OfCluster, Gauge>,
    withdrawn: Family<OfCluster, Gauge>,
    kept: Family<OfCluster, Gauge>,
    ignored: Family<OfCluster, Gauge>,
    assumed: Family<OfCluster, Gauge>,
    refetched: Family<OfCluster, Gauge<f64, AtomicU64>>,
    known_keys: Family<OfCluster, Gauge>,
    unknown_series: Family<OfCluster, Gauge>,
    level: Family<OfHost, Gauge>,
    requests: Family<Requests, Counter>,
    shed: Family<Requests, Counter>,
    held: Family<OfCluster, Counter>,
    answers: Family<Answers, Counter>,
    durations: Durations,
    reports: Counter,
    dropped: Family<Reason, Counter>,
    refused: Family<Reason, Counter>,
    report_streams: Family<Reason, Counter>,
    report_rows: Gauge,
    pub(crate) waiting_report_bytes: Gauge,
    proxies: Gauge,
    in_flight: Gauge,
    nodes: Gauge,
    capacity: Family<OfHost, Gauge<f64, AtomicU64>>,
    node_silent: Family<OfHost, Gauge>,
    denials: Denials,
    certificate_starts: Family<Named, Gauge>,
    certificate_ends: Family<Named, Gauge>,
    leader: Gauge,
    leader_changes: Counter,
    lock_index: Gauge,
    memory_limit: Gauge,
    memory_counted: Gauge,
    contents: Family<OfCluster, Gauge>,
    contents_dropped: Family<OfCluster, Gauge>,
    contents_drops: Family<OfCluster, Counter>,
    plan_moves: Family<Moves, Counter>,
    plan_evictions: Family<OfCluster, Counter>,
    kv_events: kv_events::KvEvents,
}

impl OfHost {
    fn new(cluster: &str, host: &str) -> Self {
        Self {
            cluster: cluster.to_owned(),
            host: host.to_owned(),
        }
    }
}

impl Metrics {
    /// Adds everything under the registry's prefix.
    pub fn register(&self, registry: &mut Registry) {
        let r = registry;
        r.register(
            "polls",
            "Polls of hosts by source and result",
            self.polls.clone(),
        );
        // From the start, or the first one would be no increase.
        for result in ["ok", "refused"] {
            self.config_loads
                .get_or_create(&Outcome { result })
                .inc_by(0);
        }
        r.register(
            "config_loads",
            "Changes of the configuration by result",
            self.config_loads.clone(),
        );
        r.register(
            "published",
            "Tables and shards built",
            self.published.clone(),
        );
        r.register(
            "table_built_timestamp_seconds",
            "Unix time of the newest table of hosts",
            self.built.clone(),
        );
        r.register(
            "table_missing",
            "1 while no table is pushed, because no host was found yet",
            self.missing.clone(),
        );
        r.register("hosts", "Hosts by state as pushed", self.hosts.clone());
        r.register(
            "hosts_stale",
            "Hosts without figures of their own younger than stale_after, where somebody is asked for them; counts of callers do not count",
            self.stale.clone(),
        );
        r.register(
            "health_ignored",
            "1 while fewer hosts than policy.panic_threshold take connections, and all are kept up for that reason",
            self.health_ignored.clone(),
        );
        r.register(
            "panic",
            "1 while fewer hosts than policy.panic_threshold are up, so that those which drain are chosen as well",
            self.panic.clone(),
        );
        r.register(
            "steer_percent",
            "Percent of the requests whose choice is carried out, by policy.mode; 0 as well where the policy is withdrawn",
            self.steered.clone(),
        );
        r.register(
            "policy_withdrawn",
            "1 while a policy is withdrawn, because requests that were steered fared worse than the others",
            self.withdrawn.clone(),
        );
        r.register(
            "hosts_kept",
            "Hosts that are in force although the list as it was read names them no more",
            self.kept.clone(),
        );
        r.register(
            "choices_ignored",
            "Proxies whose Envoy sends requests elsewhere than their filter says",
            self.ignored.clone(),
        );
        r.register(
            "assumed_claims",
            "Keys assumed to be at a host",
            self.assumed.clone(),
        );
        r.register(
            "refetched_ratio",
            "Of what hosts fetch, the part that they had before, as caches are full or data were replaced; \
             selection estimate then keeps jobs at the first holder of their data for longer. Learned with that \
             selection alone, while cache contents are kept",
            self.refetched.clone(),
        );
        r.register(
            "known_keys",
            "Keys that hosts say they hold, summed over hosts",
            self.known_keys.clone(),
        );
        r.register(
            "unknown_series",
            "Series of hosts that are not in the cluster, in Prometheus' last answers",
            self.unknown_series.clone(),
        );
        r.register(
            "admission_level",
            "Ranks admitted by a host, of 4096 (overload: dagor)",
            self.level.clone(),
        );
        r.register(
            "requests",
            "Requests that asked a proxy for a host, by class",
            self.requests.clone(),
        );
        r.register(
            "shed",
            "Those of them that their proxy answered 429",
            self.shed.clone(),
        );
        r.register(
            "held",
            "Requests that waited at their proxy for a host",
            self.held.clone(),
        );
        r.register(
            "answers",
            "Answers of hosts that proxies report",
            self.answers.clone(),
        );
        r.register_with_unit(
            "receipt_duration",
            "Durations of requests that left a receipt, by whether they were steered; exemplars have a receipt's number",
            Unit::Seconds,
            self.durations.family(),
        );
        r.register("reports", "Reports taken", self.reports.clone());
        r.register(
            "records_dropped",
            "Records of reports that were not counted: expired, too_many_vms, too_many_proxies",
            self.dropped.clone(),
        );
        r.register(
            "reported_refused",
            "Parts of reports that were not counted: counters, assignments, costs; leap: all of a record; host_away: a host that left within ten minutes or is still to be found",
            self.refused.clone(),
        );
        let reasons = Refused::ALL.into_iter();
        for refused in reasons.filter(|refused| !refused.is_record()) {
            let reason = refused.as_str();
            self.refused.get_or_create(&Reason { reason }).inc_by(0);
        }
        r.register(
            "report_streams_ended",
            "Streams of reports that ended, by reason; usual ones are superseded, silent, lost, shutdown",
            self.report_streams.clone(),
        );
        for reason in End::REFUSALS {
            let ended = &self.report_streams;
            ended.get_or_create(&Reason { reason }).inc_by(0);
        }
        r.register(
            "report_rows",
            "Counters of proxies that are kept, of at most reports.max_rows",
            self.report_rows.clone(),
        );
        r.register(
            "waiting_report_bytes",
            "Bytes of reports that wait to be counted, of at most reports.max_waiting_bytes",
            self.waiting_report_bytes.clone(),
        );
        r.register(
            "reporting_proxies",
            "Proxies that report",
            self.proxies.clone(),
        );
        r.register(
            "in_flight",
            "Requests on their way to hosts, as proxies reported last",
            self.in_flight.clone(),
        );
        r.register(
            "node_streams",
            "Streams of nodes' governors that are open",
            self.nodes.clone(),
        );
        r.register(
            "node_capacity_cores",
            "Cores that a host has as its node says, each times its speed",
            self.capacity.clone(),
        );
        r.register(
            "node_silent",
            "1 while a node's governor that has reported says nothing; none where none ever did",
            self.node_silent.clone(),
        );
        r.register(
            "denied",
            "Denials by the rules of authorization",
            self.denials.clone(),
        );
        r.register(
            "certificate_not_before_timestamp_seconds",
            "Begin of a certificate's validity, by the field that names its file",
            self.certificate_starts.clone(),
        );
        r.register(
            "certificate_expiry_timestamp_seconds",
            "End of a certificate's validity, by the field that names its file",
            self.certificate_ends.clone(),
        );
        self.register_memory(r);
        self.kv_events.register(r);
    }

    fn register_memory(&self, registry: &mut Registry) {
        let r = registry;
        r.register_with_unit(
            "memory_limit",
            "Limit of counted memory; 0: no limit",
            Unit::Bytes,
            self.memory_limit.clone(),
        );
        r.register_with_unit(
            "memory_counted",
            "Counted memory: cache contents, and the names that discovery streams ask for",
            Unit::Bytes,
            self.memory_counted.clone(),
        );
        r.register_with_unit(
            "cache_contents",
            "Counted memory of a cluster's cache contents",
            Unit::Bytes,
            self.contents.clone(),
        );
        r.register(
            "cache_contents_dropped",
            "1 while a cluster's cache contents are not kept, because memory.limit was reached",
            self.contents_dropped.clone(),
        );
        r.register(
            "cache_contents_drops",
            "Times that a cluster's cache contents were dropped",
            self.contents_drops.clone(),
        );
        r.register(
            "plan_moves",
            "Keys that a learned caching plan gave another host, or one more: theirs had more work than others \
             (reason: load) or was gone (host_gone)",
            self.plan_moves.clone(),
        );
        r.register(
            "plan_evictions",
            "Requests whose data their planned host fetched, though it had answered for the key before: they were evicted or \
             have changed, or the host began anew",
            self.plan_evictions.clone(),
        );
    }

    /// Counts what a step of the state has brought.
    pub(crate) fn event(&self, event: &Event, state: &State, now: Duration) {
        match event {
            Event::Polled { source, result } => self.polls(source.as_str(), result),
            Event::Reported { folded, .. } => self.report(folded),
            Event::Receipt {
                cluster,
                number,
                steered,
                lasted,
            } => self.durations.observe(cluster, *steered, *number, *lasted),
            Event::ContentsChanged {
                cluster, contents, ..
            } => self.contents(cluster, *contents),
            Event::Configured { gone } => {
                self.forget_clusters(gone.iter().map(String::as_str));
                // What a replica knew when it last led is true no longer.
                let leads = state.replica().role.leads();
                let built = |known: &(&String, &Cluster)| leads && known.1.built.is_some();
                for (name, cluster) in state.clusters().iter().filter(built) {
                    self.cluster(name, cluster, now);
                }
            }
            Event::TableMissing { cluster, missing } => self.missing(cluster, *missing),
            Event::TableBuilt { cluster, unix_ms } => {
                self.published(cluster, HOST_TABLE);
                self.built(cluster, *unix_ms);
                if let Some(known) = state.clusters().get(cluster) {
                    self.cluster(cluster, known, now);
                }
            }
            Event::ShardBuilt { cluster } => self.published(cluster, CACHE_SHARD),
            Event::TableMirrored { cluster, unix_ms } => self.built(cluster, *unix_ms),
            Event::RoleChanged { role, led } => {
                self.role(role);
                if *led && !role.leads() {
                    self.forget_clusters([]);
                    self.proxies(state.ledger(), now);
                }
            }
            Event::PollsChanged { .. }
            | Event::DeadHosts { .. }
            | Event::DiscoveryChanged { .. }
            | Event::DiscoveryWaits { .. }
            | Event::PrometheusChanged { .. }
            | Event::ChoicesIgnored { .. }
            | Event::ContentsRefused
            | Event::NodeSilent { .. }
            | Event::PanicMode { .. }
            | Event::Withdrawn { .. }
            | Event::ResourcesRefused { .. }
            | Event::Begun => {}
        }
    }

    pub(crate) fn memory(&self, limit: Option<usize>, counted: usize) {
        let bytes = |bytes| i64::try_from(bytes).unwrap_or(i64::MAX);
        self.memory_limit.set(limit.map_or(0, bytes));
        self.memory_counted.set(bytes(counted));
    }

    fn contents(&self, cluster: &str, contents: Contents) {
        let of_cluster = OfCluster {
            cluster: cluster.to_owned(),
        };
        self.contents_dropped
            .get_or_create(&of_cluster)
            .set(contents.dropped.into());
        if contents.dropped {
            self.contents_drops.get_or_create(&of_cluster).inc();
        }
    }

    /// Adds what there is of one of several replicas.
    pub fn register_replica(&self, registry: &mut Registry) {
        registry.register(
            "leader",
            "1 while this replica builds the tables",
            self.leader.clone(),
        );
        registry.register(
            "leader_changes",
            "Times that this replica has learned of another leader, or has become it",
            self.leader_changes.clone(),
        );
        registry.register(
            "lock_index",
            "Times that the lock was taken; 0 where that is not known",
            self.lock_index.clone(),
        );
    }

    fn role(&self, role: &Role) {
        self.leader.set(role.leads().into());
        self.leader_changes.inc();
        self.lock_index
            .set(i64::try_from(role.index()).unwrap_or(i64::MAX));
    }

    /// Clusters that have gone leave no series behind, and hosts no gauge; the next tables bring the others back. When its
    /// table was built stays of a cluster that stays: the table is pushed still.
    fn forget_clusters<'a>(&self, gone: impl IntoIterator<Item = &'a str>) {
        for cluster in gone {
            let cluster = cluster.to_owned();
            let of_cluster = OfCluster { cluster };
            self.durations.forget(&of_cluster.cluster);
            self.built.remove(&of_cluster);
            self.missing.remove(&of_cluster);
            self.contents_dropped.remove(&of_cluster);
            self.contents_drops.remove(&of_cluster);
            self.forget_plan(&of_cluster);
            for kind in [HOST_TABLE, CACHE_SHARD] {
                let cluster = of_cluster.cluster.clone();
                self.published.remove(&Published { cluster, kind });
            }
            self.forget_traffic(&of_cluster);
            self.kv_events.forget(&of_cluster);
        }
        self.hosts.clear();
        self.level.clear();
        self.capacity.clear();
        self.node_silent.clear();
        for gauge in [
            &self.stale,
            &self.health_ignored,
            &self.panic,
            &self.steered,
            &self.withdrawn,
            &self.kept,
            &self.ignored,
            &self.assumed,
            &self.known_keys,
            &self.unknown_series,
            &self.contents,
        ] {
            gauge.clear();
        }
        self.refetched.clear();
    }

    /// Those that are in use now, and no others.
    pub(crate) fn certificates(&self, certificates: &BTreeMap<String, Validity>) {
        self.certificate_starts.clear();
        self.certificate_ends.clear();
        for (name, validity) in certificates {
            let named = Named { name: name.clone() };
            let (starts, ends) = (&self.certificate_starts, &self.certificate_ends);
            starts.get_or_create(&named).set(validity.from);
            ends.get_or_create(&named).set(validity.until);
        }
    }

    fn polls(&self, source: &'static str, result: &'static str) {
        self.polls.get_or_create(&Poll { source, result }).inc();
    }

    pub(crate) fn config_loads(&self, result: &'static str) {
        self.config_loads.get_or_create(&Outcome { result }).inc();
    }

    fn published(&self, cluster: &str, kind: &'static str) {
        self.published
            .get_or_create(&Published {
                cluster: cluster.to_owned(),
                kind,
            })
            .inc();
    }

    fn built(&self, cluster: &str, unix_ms: u64) {
        let of_cluster = OfCluster {
            cluster: cluster.to_owned(),
        };
        let seconds = unix_ms as f64 / 1e3;
        self.built.get_or_create(&of_cluster).set(seconds);
    }

    fn missing(&self, cluster: &str, is_missing: bool) {
        let of_cluster = OfCluster {
            cluster: cluster.to_owned(),
        };
        self.missing
            .get_or_create(&of_cluster)
            .set(is_missing.into());
    }

    pub(crate) fn proxies(&self, ledger: &Ledger, now: Duration) {
        self.proxies.set(ledger.proxies() as i64);
        self.report_rows.set(ledger.rows() as i64);
        self.in_flight
            .set(i64::try_from(ledger.in_flight(now)).unwrap_or(i64::MAX));
    }

    /// Streams of governors, for whoever counts them.
    pub(crate) fn node_streams(&self) -> Gauge {
        self.nodes.clone()
    }

    /// What engines publish, for whoever listens.
    pub(crate) fn kv_events(&self) -> kv_events::KvEvents {
        self.kv_events.clone()
    }

    pub(crate) fn denials(&self) -> Denials {
        self.denials.clone()
    }

    /// Counts the end of a stream of reports.
    pub(crate) fn report_stream_ended(&self, reason: &'static str) {
        self.report_streams.get_or_create(&Reason { reason }).inc();
    }

    fn report(&self, report: &Folded) {
        self.reports.inc();
        for (refused, count) in report.refused.iter() {
            let reason = refused.as_str();
            let counters = match refused.is_record() {
                true => &self.dropped,
                false => &self.refused,
            };
            counters.get_or_create(&Reason { reason }).inc_by(count);
        }
        for (cluster, news) in &report.news {
            let of_class = |rank: &Rank| Requests {
                cluster: cluster.clone(),
                class: rank.class(),
            };
            for (rank, n) in &news.offered {
                let labels = of_class(rank);
                self.requests.get_or_create(&labels).inc_by(*n);
                // A class of which nothing is shed says so.
                drop(self.shed.get_or_create(&labels));
            }
            for (rank, n) in &news.shed {
                self.shed.get_or_create(&of_class(rank)).inc_by(*n);
            }
            let of_cluster = OfCluster {
                cluster: cluster.clone(),
            };
            self.held.get_or_create(&of_cluster).inc_by(news.held);
            for (class, n) in OUTCOMES.into_iter().zip(news.outcomes) {
                self.answers
                    .get_or_create(&Answers {
                        cluster: cluster.clone(),
                        class,
                    })
                    .inc_by(n);
            }
        }
    }

    fn cluster(&self, name: &str, cluster: &Cluster, now: Duration) {
        let of_cluster = OfCluster {
            cluster: name.to_owned(),
        };
        let health_ignored = cluster.health_ignored();
        let states = [
            ("up", HostState::Up),
            ("draining", HostState::Draining),
            ("down", HostState::Down),
        ];
        for (state, wanted) in states {
            let hosts = cluster.hosts.values();
            let count = hosts
                .filter(|host| cluster.state_of(host, health_ignored) == wanted)
                .count();
            let labels = ClusterState {
                cluster: name.to_owned(),
                state,
            };
            self.hosts.get_or_create(&labels).set(count as i64);
        }
        let limit = cluster.config.policy.stale_after;
        let is_stale = |host: &&weir_fleet::host::Host| host.age(now).is_none_or(|age| age > limit);
        // Of hosts that nobody asks no figures are missing.
        match cluster.config.has_figures() {
            true => {
                let stale = cluster.hosts.values().filter(is_stale).count();
                self.stale.get_or_create(&of_cluster).set(stale as i64);
            }
            false => {
                self.stale.remove(&of_cluster);
            }
        }
        self.health_ignored
            .get_or_create(&of_cluster)
            .set(health_ignored.into());
        self.panic
            .get_or_create(&of_cluster)
            .set(cluster.panics().into());
        self.steered
            .get_or_create(&of_cluster)
            .set(cluster.steer_percent().into());
        self.withdrawn
            .get_or_create(&of_cluster)
            .set(cluster.withdrawn.is_some().into());
        let kept = cluster.config.kept.map_or(0, |kept| kept.gone);
        self.kept.get_or_create(&of_cluster).set(kept as i64);
        self.ignored
            .get_or_create(&of_cluster)
            .set(cluster.ignoring().len() as i64);
        self.refetched
            .get_or_create(&of_cluster)
            .set(cluster.costs.refetched());
        self.assumed
            .get_or_create(&of_cluster)
            .set(cluster.holdings.assumed_claims() as i64);
        let keys: usize = cluster
            .hosts
            .values()
            .map(|host| cluster.holdings.known_keys(host.id))
            .sum();
        self.known_keys.get_or_create(&of_cluster).set(keys as i64);
        // There before anything is dropped, so that an alert has something to compare with.
        let _ = self.contents_dropped.get_or_create(&of_cluster);
        self.contents
            .get_or_create(&of_cluster)
            .set(cluster.contents_bytes() as i64);
        if cluster.config.prometheus.is_some() {
            self.unknown_series
                .get_or_create(&of_cluster)
                .set(cluster.unknown_series as i64);
        }
        match cluster.config.planner {
            Some(_) => self.plan(name, cluster.planner.counts()),
            None => self.forget_plan(&of_cluster),
        }
        self.nodes_of(name, cluster);
        if cluster.config.policy.overload == Overload::Dagor {
            self.levels(name, cluster, now);
        }
    }

    /// Of this process since it began to lead, or the plan was dropped.
    fn plan(&self, name: &str, counts: planner::Counts) {
        for (reason, count) in MOVED.into_iter().zip([counts.balanced, counts.rehoused]) {
            let cluster = name.to_owned();
            let moves = self.plan_moves.get_or_create(&Moves { cluster, reason });
            moves.inner().store(count, Ordering::Relaxed);
        }
        let cluster = name.to_owned();
        let evictions = self.plan_evictions.get_or_create(&OfCluster { cluster });
        evictions.inner().store(counts.evicted, Ordering::Relaxed);
    }

    fn forget_plan(&self, of_cluster: &OfCluster) {
        self.plan_evictions.remove(of_cluster);
        for reason in MOVED {
            let cluster = of_cluster.cluster.clone();
            self.plan_moves.remove(&Moves { cluster, reason });
        }
    }

    fn nodes_of(&self, name: &str, cluster: &Cluster) {
        for (address, host) in &cluster.hosts {
            let labels = OfHost::new(name, address);
            let (said, silent) = (host.node.said(), host.node.is_silent());
            match said.is_some() || silent {
                true => {
                    let gauge = self.node_silent.get_or_create(&labels);
                    gauge.set(silent.into());
                }
                false => drop(self.node_silent.remove(&labels)),
            }
            match said {
                Some((millicores, _)) => {
                    let cores = f64::from(millicores) / 1000.0;
                    self.capacity.get_or_create(&labels).set(cores);
                }
                None => {
                    self.capacity.remove(&labels);
                }
            }
        }
    }

    fn levels(&self, name: &str, cluster: &Cluster, now: Duration) {
        for (address, host) in &cluster.hosts {
            let level = self.level.get_or_create(&OfHost::new(name, address));
            level.set(cluster.level_of(host, now).ranks().into());
        }
    }
}
