// SPDX-License-Identifier: Apache-2.0
//! What can be seen from outside, as JSON.

pub mod glance;
pub mod receipt;
pub mod shadow;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use weir_policy::{HostState, Overload, Salt};
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE};

use crate::authorization::{Authorization, Clusters, Sight, What};
use crate::clients::Client;
use crate::cluster::Cluster;
use crate::host::{Host, Polls};
use crate::ledger::Tally;
use crate::observed;
use crate::poll::Source;
use crate::role::Role;
use crate::settings::Instance;
use crate::snapshot::Snapshot;
use crate::state::State;
use crate::state::replica::Replica;

/// The state at one moment.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct View {
    pub epoch: String,
    /// Of weir-control.
    pub program_version: &'static str,
    /// Why the files as they are now are not in force.
    pub configuration_refused: Option<String>,
    /// Absent where there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<ReplicaView>,
    /// Why sidecars get no tables from here.
    #[serde(skip)]
    pub unready: Option<String>,
    pub memory: MemoryView,
    pub clusters: BTreeMap<String, ClusterView>,
    pub proxies: Vec<ProxyView>,
    /// The proxies of whose reports most is not counted.
    pub reports_refused: Vec<ReporterView>,
    pub refusals: Vec<RefusalView>,
    /// What is pushed.
    #[serde(skip)]
    pub snapshot: Arc<Snapshot>,
}

/// What is counted, and what it may take.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct MemoryView {
    pub limit_bytes: Option<usize>,
    pub counted_bytes: usize,
}

/// What this process is among several.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct ReplicaView {
    /// `waiting`, `leading` or `following`.
    pub role: &'static str,
    /// Name and address of the one that is followed.
    pub leader: Option<LeaderView>,
    pub lock_index: u64,
    pub since_ms: u64,
    /// What is wrong with the lock.
    pub complaint: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct LeaderView {
    pub name: String,
    pub address: String,
}

#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct ClusterView {
    pub version: Option<String>,
    pub table_age_ms: Option<u64>,
    pub overload: String,
    pub selection: String,
    /// `live`, `shadow`, or the share of the keys that is live: `10%`.
    pub mode: String,
    /// Why no request is steered, although the policy says that some are.
    pub withdrawn: Option<String>,
    /// So many hosts refuse connections that none is taken out.
    pub health_ignored: bool,
    /// So few hosts are up that those which drain are chosen as well.
    pub panics: bool,
    /// Why the hosts are not those that are written now.
    pub hosts_kept: Option<String>,
    /// Some of the proxies whose Envoy sends requests elsewhere than their filter says.
    pub choices_ignored_by: Vec<String>,
    /// Those that are asked for the whole cluster.
    pub sources: BTreeMap<&'static str, SourceView>,
    /// Series that Prometheus has of hosts that are not in this cluster.
    pub unknown_series: u64,
    /// Whether keys are hashed with a salt.
    pub keys_salted: bool,
    #[serde(skip)]
    pub salt: Option<Salt>,
    pub cache_shards: BTreeMap<String, String>,
    pub assumed_claims: usize,
    pub cache_contents_bytes: usize,
    /// `memory.limit` was reached: caches are not asked, and sidecars told that nobody has anything.
    pub cache_contents_dropped: bool,
    /// Why no table is pushed.
    pub not_pushed: Option<&'static str>,
    pub hosts: Vec<HostView>,
}

#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct HostView {
    pub address: String,
    /// `configuration`, `consul`, `dns`, `kubernetes` or `both`.
    pub named_by: &'static str,
    /// What discovery knows it as.
    pub instance: Option<Instance>,
    /// Where it is, as far as anybody says.
    pub zone: Option<String>,
    pub state: &'static str,
    pub refuses_connections: bool,
    pub in_progress: Option<u32>,
    /// By class, up to the last that has any: empty where nothing is queued.
    pub queued: Option<Vec<u32>>,
    pub queuing_delay_ms: Option<f64>,
    pub age_ms: Option<u64>,
    pub stale: bool,
    /// `scrape`, `report`, `prometheus` or `callers`.
    pub from: Option<&'static str>,
    /// The same of the newest table.
    #[serde(skip)]
    pub pushed_from: Option<&'static str>,
    pub admission_level: u16,
    pub capacity_millicores: u32,
    /// `node`, `configuration` or `page`.
    pub capacity_from: &'static str,
    /// Where it is the node's.
    pub capacity_age_ms: Option<u64>,
    /// Its node's governor has told a capacity and says nothing any more.
    pub node_silent: bool,
    pub preempt_at_unix_ms: u64,
    pub known_keys: usize,
    pub sources: BTreeMap<&'static str, SourceView>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[allow(missing_docs)]
pub struct SourceView {
    pub last_success_ms_ago: Option<u64>,
    pub error: Option<String>,
    pub failing_for_ms: Option<u64>,
    pub complaints: Vec<String>,
}

#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct ProxyView {
    pub proxy: String,
    pub peer: Option<String>,
    /// What its certificate names.
    pub identity: Option<String>,
    /// What the rules allow it; absent where there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub may: Option<MayView>,
    pub kind: &'static str,
    /// The filter's, or Envoy's; absent where it tells none.
    pub program_version: Option<String>,
    pub connected_for_ms: u64,
    pub accepted: BTreeMap<String, BTreeMap<String, String>>,
    pub refuses: Vec<RefusalView>,
}

/// Clusters by what an identity may do there; `*` stands for all.
#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct MayView {
    pub tables: Clusters,
    pub keys: Clusters,
    pub report: Clusters,
    pub capacity: Clusters,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ReporterView {
    pub proxy: String,
    /// By reason, while the proxy is known.
    pub refused: BTreeMap<&'static str, u64>,
}

#[derive(Clone, Debug, Serialize)]
#[allow(missing_docs)]
pub struct RefusalView {
    pub proxy: String,
    pub type_url: String,
    pub reason: String,
    pub resources: BTreeMap<String, String>,
    pub ms_ago: u64,
}

/// Proxies of a fleet that are named.
const MOST_SHOWN: usize = 20;

/// Of a cluster whose hosts are still to be found.
const NOT_PUSHED: &str = "no host of this cluster was found yet; proxies keep what they have";

impl SourceView {
    /// What is wrong with it, in one sentence each.
    pub fn trouble(&self) -> impl Iterator<Item = &String> {
        self.error.iter().chain(&self.complaints)
    }
}

impl State {
    /// What can be seen at `now`.
    pub fn view(&self, now: Duration) -> View {
        let versions = |kind: &str, prefix: &str| -> BTreeMap<String, String> {
            let resources = self
                .snapshot()
                .of_type(kind)
                .into_iter()
                .flat_map(|map| map.iter());
            let of_cluster = resources.filter(|(name, _)| name.starts_with(prefix));
            of_cluster
                .map(|(name, resource)| (name.clone(), resource.version.to_string()))
                .collect()
        };
        let clusters = self.clusters().iter().map(|(name, cluster)| {
            let mut view = cluster_view(cluster, now);
            view.version = self
                .snapshot()
                .get(HOST_TABLE_TYPE, name)
                .map(|table| table.version.to_string());
            view.cache_contents_dropped = self.budget().contents(name).dropped;
            view.cache_shards = versions(CACHE_SHARD_TYPE, &format!("{name}/"));
            (name.clone(), view)
        });
        View {
            epoch: format!("{:x}", self.epoch()),
            // All crates have one.
            program_version: env!("CARGO_PKG_VERSION"),
            configuration_refused: self.refused().map(str::to_owned),
            replica: self
                .replica()
                .of_several
                .then(|| replica_view(self.replica(), now)),
            unready: self.unready(),
            memory: self.memory_view(),
            clusters: clusters.collect(),
            proxies: self
                .clients()
                .clients()
                .map(|client| proxy_view(client, self.settings().authorization.as_deref(), now))
                .collect(),
            reports_refused: self
                .ledger()
                .most_refused(MOST_SHOWN)
                .into_iter()
                .map(|(proxy, refused)| reporter_view(proxy, refused))
                .collect(),
            refusals: self
                .clients()
                .refusals()
                .map(|refusal| refusal_view(refusal, now))
                .collect(),
            snapshot: Arc::new(self.snapshot().clone()),
        }
    }

    fn memory_view(&self) -> MemoryView {
        MemoryView {
            limit_bytes: self.budget().limit(),
            counted_bytes: self.budget().counted(),
        }
    }
}

fn replica_view(replica: &Replica, now: Duration) -> ReplicaView {
    let leader = match &replica.role {
        Role::Following(leader) => Some(LeaderView {
            name: leader.name.clone(),
            address: leader.address.clone(),
        }),
        _ => None,
    };
    ReplicaView {
        role: replica.role.as_str(),
        leader,
        lock_index: replica.role.index(),
        since_ms: ms(replica.since, now),
        complaint: replica.complaint.clone(),
    }
}

fn ms(from: Duration, now: Duration) -> u64 {
    now.saturating_sub(from).as_millis() as u64
}

fn cluster_view(cluster: &Cluster, now: Duration) -> ClusterView {
    let health_ignored = cluster.health_ignored();
    let policy = &cluster.config.policy;
    ClusterView {
        version: None,
        table_age_ms: cluster.built.map(|built| ms(built, now)),
        overload: overload_name(policy.overload),
        selection: policy.selection.as_str().to_owned(),
        mode: mode(policy.steer_percent),
        withdrawn: cluster.withdrawn.map(|worse| worse.to_string()),
        health_ignored,
        panics: cluster.panics(),
        hosts_kept: cluster.config.kept.map(|kept| kept.to_string()),
        choices_ignored_by: cluster
            .ignoring()
            .take(MOST_SHOWN)
            .map(str::to_owned)
            .collect(),
        sources: source_views(&cluster.polls, now),
        unknown_series: cluster.unknown_series,
        keys_salted: cluster.config.salt.is_some(),
        salt: cluster.config.salt.clone(),
        cache_shards: BTreeMap::new(),
        assumed_claims: cluster.holdings.assumed_claims(),
        cache_contents_bytes: cluster.contents_bytes(),
        cache_contents_dropped: false,
        not_pushed: cluster.is_unknown(now).then_some(NOT_PUSHED),
        hosts: cluster
            .hosts
            .values()
            .map(|host| host_view(host, cluster, health_ignored, now))
            .collect(),
    }
}

/// As the configuration has it.
pub fn mode(steer_percent: u32) -> String {
    match steer_percent {
        0 => "shadow".to_owned(),
        100.. => "live".to_owned(),
        percent => format!("{percent}%"),
    }
}

/// Its name in `/tables` and `/explain`.
pub fn state_name(state: HostState) -> &'static str {
    match state {
        HostState::Up => "up",
        HostState::Draining => "draining",
        HostState::Down => "down",
    }
}

fn host_view(host: &Host, cluster: &Cluster, health_ignored: bool, now: Duration) -> HostView {
    let observed = host.newest(&cluster.config.policy, now);
    let age = observed
        .as_ref()
        .map(|observed| now.saturating_sub(observed.at));
    let from = observed.as_ref().map(|observed| observed.from.as_str());
    let figures = observed
        .map(|observed| observed.figures)
        .unwrap_or_default();
    let said = host.node.said();
    HostView {
        address: host.config.address.clone(),
        named_by: match (host.config.written, &host.config.instance) {
            (_, None) => "configuration",
            (None, Some(_)) => match &cluster.config.registry {
                Some(registry) => registry.source().as_str(),
                None => "configuration",
            },
            (Some(_), Some(_)) => "both",
        },
        instance: host.config.instance.clone(),
        zone: host.config.zone.clone(),
        state: state_name(cluster.state_of(host, health_ignored)),
        refuses_connections: host.is_dead(),
        in_progress: figures.in_progress,
        queued: figures.queued.map(up_to_the_last_queued),
        queuing_delay_ms: figures.queuing_delay.map(|delay| delay.as_secs_f64() * 1e3),
        age_ms: age.map(|age| age.as_millis() as u64),
        stale: age.is_none_or(|age| age > cluster.config.policy.stale_after),
        from,
        pushed_from: host.pushed_from.map(observed::From::as_str),
        admission_level: cluster.level_of(host, now).ranks(),
        capacity_millicores: host.capacity_millicores(),
        capacity_from: host.capacity_from(),
        capacity_age_ms: said.map(|(_, at)| ms(at, now)),
        node_silent: host.node.is_silent(),
        preempt_at_unix_ms: host.config.preempt_at_unix_ms,
        known_keys: cluster.holdings.known_keys(host.id),
        sources: source_views(&host.polls, now),
    }
}

/// Without classes that nothing is queued of behind them: a table of 2,000 idle hosts would be 34,000 lines of zeros.
fn up_to_the_last_queued(mut queued: Vec<u32>) -> Vec<u32> {
    let last = queued.iter().rposition(|jobs| *jobs > 0);
    queued.truncate(last.map_or(0, |last| last + 1));
    queued
}

fn source_views(
    polls: &BTreeMap<Source, Polls>,
    now: Duration,
) -> BTreeMap<&'static str, SourceView> {
    let views = polls.iter().map(|(source, polls)| {
        let view = SourceView {
            last_success_ms_ago: polls.succeeded.map(|at| ms(at, now)),
            error: polls.error(),
            failing_for_ms: polls.failing.as_ref().map(|(_, since)| ms(*since, now)),
            complaints: polls.complaints.clone(),
        };
        (source.as_str(), view)
    });
    views.collect()
}

/// With its parameters.
fn overload_name(overload: Overload) -> String {
    match overload {
        Overload::DynamicBreaker(params) => format!(
            "dynamic_breaker {{ queued_jobs: {}, wait: {:?}, least_queued_jobs: {} }}",
            params.queued_jobs, params.wait, params.least_queued_jobs
        ),
        other => format!("{other:?}").to_lowercase(),
    }
}

fn may_view(rules: &Authorization, identity: &str) -> MayView {
    let Sight { tables, keys } = rules.sight(identity);
    MayView {
        tables,
        keys,
        report: rules.clusters(identity, What::Report),
        capacity: rules.clusters(identity, What::Capacity),
    }
}

fn proxy_view(client: &Client, rules: Option<&Authorization>, now: Duration) -> ProxyView {
    let versions = |has: &BTreeMap<String, Arc<str>>| {
        has.iter()
            .map(|(name, version)| (name.clone(), version.to_string()))
            .collect()
    };
    ProxyView {
        proxy: client.proxy.to_string(),
        peer: client.peer.map(|peer| peer.to_string()),
        identity: client.identity.as_deref().map(str::to_owned),
        may: rules.map(|rules| may_view(rules, client.identity.as_deref().unwrap_or_default())),
        kind: if client.weir { "weir" } else { "envoy" },
        program_version: client.version.as_deref().map(str::to_owned),
        connected_for_ms: ms(client.since, now),
        accepted: client
            .has
            .iter()
            .map(|(kind, has)| (kind.to_string(), versions(has)))
            .collect(),
        refuses: client
            .refuses
            .values()
            .map(|refusal| refusal_view(refusal, now))
            .collect(),
    }
}

fn reporter_view(proxy: &str, refused: &Tally) -> ReporterView {
    let refused = refused.iter();
    ReporterView {
        proxy: proxy.to_owned(),
        refused: refused
            .map(|(reason, count)| (reason.as_str(), count))
            .collect(),
    }
}

fn refusal_view(refusal: &crate::clients::Refusal, now: Duration) -> RefusalView {
    RefusalView {
        proxy: refusal.proxy.to_string(),
        type_url: refusal.type_url.to_string(),
        reason: refusal.reason.clone(),
        resources: refusal
            .versions
            .iter()
            .map(|(name, version)| (name.clone(), version.to_string()))
            .collect(),
        ms_ago: ms(refusal.at, now),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_keep_their_place_and_an_empty_queue_is_an_empty_list() {
        let shown = |queued: &[u32]| up_to_the_last_queued(queued.to_vec());
        assert!(shown(&[0; 32]).is_empty());
        assert_eq!(shown(&[1]), [1]);
        assert_eq!(shown(&[0, 3, 0, 2, 0]), [0, 3, 0, 2]);
    }
}
