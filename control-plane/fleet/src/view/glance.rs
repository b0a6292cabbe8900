// SPDX-License-Identifier: Apache-2.0
//! What the live page shows: the figures of a [`super::View`] without its words, of a bounded number of hosts and
//! sidecars. It is asked for once a second, of the one task that has the state.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use weir_policy::Level;
use weir_tables::HOST_TABLE_TYPE;

use super::{
    LeaderView, MemoryView, ReporterView, ms, overload_name, replica_view, reporter_view,
    state_name,
};
use crate::clients::{Client, Refusal};
use crate::cluster::Cluster;
use crate::host::Host;
use crate::snapshot::Snapshot;
use crate::state::State;

/// What a glance has at the most. Totals count all.
#[derive(Clone, Copy, Debug)]
pub struct Most {
    /// Of all clusters together, in the order of their names.
    pub hosts: usize,
    /// Those that refuse something first.
    pub sidecars: usize,
}

/// Complaints are cut at so many bytes.
const LONGEST_REASON: usize = 200;
/// Versions of tables, refusals and followers that are named each.
const MOST_NAMED: usize = 8;
/// A replica follows under this prefix of its node id.
const REPLICA: &str = "replica/";

/// The fleet at one moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Glance {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unready: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration_refused: Option<String>,
    /// Absent where there is only one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<ReplicaGlance>,
    pub memory: MemoryView,
    /// Requests on their way to hosts, as sidecars reported last.
    pub in_flight: u64,
    pub clusters: BTreeMap<String, ClusterGlance>,
    pub sidecars: SidecarsGlance,
}

/// What this process is among several.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ReplicaGlance {
    /// `waiting`, `leading` or `following`.
    pub role: &'static str,
    pub leader: Option<LeaderView>,
    pub since_ms: u64,
    pub complaint: Option<String>,
    /// Replicas that follow this one.
    pub followers: Vec<String>,
}

/// A cluster.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct ClusterGlance {
    pub overload: String,
    pub selection: String,
    /// Absent before the first table.
    pub table_age_ms: Option<u64>,
    /// As pushed.
    pub version: Option<String>,
    pub stale_after_ms: u64,
    pub total: Totals,
    pub panics: bool,
    pub health_ignored: bool,
    /// Sidecars whose Envoy sends requests elsewhere than their filter says.
    pub choices_ignored: usize,
    pub cache_contents_dropped: bool,
    /// Faults of the sources that are asked for the whole cluster, and hosts that are kept.
    pub trouble: Vec<String>,
    pub hosts: Vec<HostGlance>,
}

/// Of all hosts of a cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Totals {
    pub hosts: usize,
    pub up: usize,
    pub draining: usize,
    pub down: usize,
    pub stale: usize,
    /// With a level that does not admit all.
    pub restricted: usize,
    pub in_progress: u64,
    pub queued: u64,
    pub worst_delay_ms: Option<f64>,
}

/// A host. What is usual is left out of the JSON.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct HostGlance {
    pub host: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_progress: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queued: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay_ms: Option<f64>,
    /// Ranks admitted; absent: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub level: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub age_ms: Option<u64>,
    #[serde(skip_serializing_if = "is_false")]
    pub stale: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<&'static str>,
    /// 0 where unknown.
    pub millicores: u32,
    pub keys: usize,
    /// The first fault of its sources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trouble: Option<String>,
}

/// The sidecars.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct SidecarsGlance {
    /// Streams of filters, of Envoys in standalone mode, and those of either that refuse something.
    pub weir: usize,
    pub envoy: usize,
    pub refusing: usize,
    pub reporting: usize,
    pub rows: Vec<SidecarGlance>,
    /// The newest of each sidecar and type, the newest first, also of streams that have ended.
    pub refusals: Vec<RefusalGlance>,
    pub reports_refused: Vec<ReporterView>,
}

/// A discovery stream of a sidecar.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct SidecarGlance {
    pub proxy: String,
    pub peer: Option<String>,
    pub kind: &'static str,
    /// The filter's, or Envoy's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub program_version: Option<String>,
    pub connected_for_ms: u64,
    /// Versions of tables that it accepted, by cluster: some.
    pub tables: BTreeMap<String, String>,
    /// Tables that it accepted, and those of them that are not the ones that are pushed.
    pub accepted: usize,
    pub behind: usize,
    pub refuses: Vec<RefusalGlance>,
}

/// A response that a sidecar refused.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct RefusalGlance {
    pub proxy: String,
    /// The end of the type's name.
    pub kind: String,
    pub reason: String,
    pub ms_ago: u64,
}

fn is_false(is: &bool) -> bool {
    !is
}

impl State {
    /// The figures at `now`.
    pub fn glance(&self, now: Duration, most: Most) -> Glance {
        let mut room = most.hosts;
        let clusters = self.clusters().iter().map(|(name, cluster)| {
            let mut glance = cluster_glance(cluster, now, room);
            room -= glance.hosts.len();
            let table = self.snapshot().get(HOST_TABLE_TYPE, name);
            glance.version = table.map(|table| table.version.to_string());
            glance.cache_contents_dropped = self.budget().contents(name).dropped;
            (name.clone(), glance)
        });
        let replica = self.replica();
        Glance {
            unready: self.unready(),
            configuration_refused: self.refused().map(str::to_owned),
            replica: replica.of_several.then(|| {
                let view = replica_view(replica, now);
                ReplicaGlance {
                    role: view.role,
                    leader: view.leader,
                    since_ms: view.since_ms,
                    complaint: view.complaint,
                    followers: self.followers(),
                }
            }),
            memory: self.memory_view(),
            in_flight: self.ledger().in_flight(now),
            clusters: clusters.collect(),
            sidecars: self.sidecars(now, most.sidecars),
        }
    }

    fn followers(&self) -> Vec<String> {
        let names = self.clients().clients().filter_map(follower);
        let mut names: Vec<_> = names.take(MOST_NAMED).map(str::to_owned).collect();
        names.sort_unstable();
        names
    }

    fn sidecars(&self, now: Duration, most: usize) -> SidecarsGlance {
        let streams = self.clients().clients();
        let mut streams: Vec<&Client> = streams.filter(|it| follower(it).is_none()).collect();
        streams.sort_by_key(|client| (client.refuses.is_empty(), client.proxy.clone()));
        let weir = streams.iter().filter(|client| client.weir).count();
        let refusing = streams.iter().filter(|client| !client.refuses.is_empty());
        let mut newest = BTreeMap::new();
        for refusal in self.clients().refusals() {
            newest.insert((&refusal.proxy, &refusal.type_url), refusal);
        }
        let mut newest: Vec<_> = newest.into_values().collect();
        newest.sort_by_key(|refusal| std::cmp::Reverse(refusal.at));
        newest.truncate(MOST_NAMED);
        let reports_refused = self.ledger().most_refused(MOST_NAMED).into_iter();
        SidecarsGlance {
            weir,
            envoy: streams.len() - weir,
            refusing: refusing.count(),
            reporting: self.ledger().proxies(),
            rows: streams
                .iter()
                .take(most)
                .map(|client| sidecar_glance(client, self.snapshot(), now))
                .collect(),
            refusals: newest.iter().map(|it| refusal_glance(it, now)).collect(),
            reports_refused: reports_refused
                .map(|(proxy, refused)| reporter_view(proxy, refused))
                .collect(),
        }
    }
}

fn follower(client: &Client) -> Option<&str> {
    client.proxy.strip_prefix(REPLICA)
}

fn cluster_glance(cluster: &Cluster, now: Duration, room: usize) -> ClusterGlance {
    let health_ignored = cluster.health_ignored();
    let policy = &cluster.config.policy;
    let mut total = Totals::default();
    let mut hosts = Vec::with_capacity(room.min(cluster.hosts.len()));
    for host in cluster.hosts.values() {
        let glance = host_glance(host, cluster, health_ignored, now);
        total.add(&glance);
        if hosts.len() < room {
            hosts.push(glance);
        }
    }
    let kept = cluster.config.kept.map(|kept| kept.to_string());
    let faults = cluster.polls.iter().flat_map(|(source, polls)| {
        let all = polls.error().into_iter().chain(polls.complaints.clone());
        all.map(|fault| format!("{}: {fault}", source.as_str()))
    });
    let unpushed = cluster
        .is_unknown(now)
        .then(|| super::NOT_PUSHED.to_owned());
    let withdrawn = cluster
        .withdrawn
        .map(|worse| format!("the policy is withdrawn: {worse}"));
    let trouble = unpushed
        .into_iter()
        .chain(withdrawn)
        .chain(kept)
        .chain(faults);
    ClusterGlance {
        overload: overload_name(policy.overload),
        selection: policy.selection.as_str().to_owned(),
        table_age_ms: cluster.built.map(|built| ms(built, now)),
        version: None,
        stale_after_ms: policy.stale_after.as_millis() as u64,
        total,
        panics: cluster.panics(),
        health_ignored,
        choices_ignored: cluster.ignoring().len(),
        cache_contents_dropped: false,
        trouble: trouble.take(MOST_NAMED).map(cut).collect(),
        hosts,
    }
}

impl Totals {
    fn add(&mut self, host: &HostGlance) {
        self.hosts += 1;
        match host.state {
            "up" => self.up += 1,
            "draining" => self.draining += 1,
            _ => self.down += 1,
        }
        self.stale += usize::from(host.stale);
        self.restricted += usize::from(host.level.is_some());
        // A load that is stale is not counted by anybody.
        if !host.stale {
            self.in_progress += u64::from(host.in_progress.unwrap_or(0));
            self.queued += u64::from(host.queued.unwrap_or(0));
            let delays = self.worst_delay_ms.into_iter().chain(host.delay_ms);
            self.worst_delay_ms = delays.reduce(f64::max);
        }
    }
}

fn host_glance(host: &Host, cluster: &Cluster, health_ignored: bool, now: Duration) -> HostGlance {
    let observed = host.newest(&cluster.config.policy, now);
    let age = observed.as_ref().map(|it| now.saturating_sub(it.at));
    let from = observed.as_ref().map(|observed| observed.from.as_str());
    let figures = observed.map(|it| it.figures).unwrap_or_default();
    let queued = figures.queued.as_ref();
    let level = cluster.level_of(host, now);
    let mut faults = host.polls.iter();
    let trouble = faults.find_map(|(source, polls)| {
        let fault = polls.error().or_else(|| polls.complaints.first().cloned());
        Some(cut(format!("{}: {}", source.as_str(), fault?)))
    });
    HostGlance {
        host: host.config.address.clone(),
        zone: host.config.zone.clone(),
        state: state_name(cluster.state_of(host, health_ignored)),
        in_progress: figures.in_progress,
        queued: queued.map(|all| all.iter().fold(0u32, |sum, jobs| sum.saturating_add(*jobs))),
        // Microseconds are more than anybody reads.
        delay_ms: figures
            .queuing_delay
            .map(|delay| (delay.as_secs_f64() * 1e5).round() / 1e2),
        level: (level != Level::ALL).then(|| level.ranks()),
        age_ms: age.map(|age| age.as_millis() as u64),
        stale: age.is_none_or(|age| age > cluster.config.policy.stale_after),
        from,
        millicores: host.capacity_millicores(),
        keys: cluster.holdings.known_keys(host.id),
        trouble,
    }
}

fn sidecar_glance(client: &Client, snapshot: &Snapshot, now: Duration) -> SidecarGlance {
    let tables = client.has.get(HOST_TABLE_TYPE);
    let tables = || tables.into_iter().flatten();
    let is_behind = |(name, version): &(&String, &std::sync::Arc<str>)| {
        let pushed = snapshot.get(HOST_TABLE_TYPE, name);
        pushed.is_some_and(|pushed| *pushed.version != ***version)
    };
    let named = tables().take(MOST_NAMED);
    let refuses = client.refuses.values().take(MOST_NAMED);
    SidecarGlance {
        proxy: client.proxy.to_string(),
        peer: client.peer.map(|peer| peer.to_string()),
        kind: if client.weir { "weir" } else { "envoy" },
        program_version: client.version.as_deref().map(str::to_owned),
        connected_for_ms: ms(client.since, now),
        tables: named
            .map(|(name, version)| (name.clone(), version.to_string()))
            .collect(),
        accepted: tables().count(),
        behind: tables().filter(is_behind).count(),
        refuses: refuses.map(|it| refusal_glance(it, now)).collect(),
    }
}

fn refusal_glance(refusal: &Refusal, now: Duration) -> RefusalGlance {
    let kind = refusal.type_url.rsplit('.').next();
    RefusalGlance {
        proxy: refusal.proxy.to_string(),
        kind: kind.unwrap_or_default().to_owned(),
        reason: cut(refusal.reason.clone()),
        ms_ago: ms(refusal.at, now),
    }
}

fn cut(mut text: String) -> String {
    let end = text.floor_char_boundary(LONGEST_REASON);
    if end < text.len() {
        text.truncate(end);
        text.push('…');
    }
    text
}
