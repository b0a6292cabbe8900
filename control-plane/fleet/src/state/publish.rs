// SPDX-License-Identifier: Apache-2.0
//! From what is known to resources that are pushed.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use weir_policy::HostState;
use weir_tables::{CACHE_SHARD_TYPE, HOST_TABLE_TYPE, Meta, cache_shard_name};

use super::State;
use crate::cluster::Cluster;
use crate::event::Event;
use crate::host::Host;
use crate::snapshot::{Resource, Snapshot};
use crate::standalone::{ClusterHosts, Health};
use crate::tables;
use crate::types::ENDPOINTS;

type Resources = BTreeMap<String, Resource>;

impl State {
    /// Builds what is due; none where nothing is. `unix_ms` is the same moment as `now`.
    pub fn publish(&mut self, now: Instant, unix_ms: u64) -> (Option<Arc<Snapshot>>, Vec<Event>) {
        let now = self.clock(now);
        let snapshot = match self.replica.role.leads() {
            true => self.publish_own(now, unix_ms),
            false => self.publish_mirrored(now),
        };
        (snapshot, self.taken_events())
    }

    fn publish_own(&mut self, now: Duration, unix_ms: u64) -> Option<Arc<Snapshot>> {
        for cluster in self.clusters.values_mut() {
            cluster.note_caches_asked(now);
        }
        let mut clusters = self.clusters.iter();
        let is_due = clusters
            .any(|(name, known)| self.is_due(known, now) || self.has_old_table(name, known, now));
        if !self.configured && !is_due {
            return None;
        }
        let mut tables = take(&mut self.snapshot, HOST_TABLE_TYPE);
        let asked = self.clusters.values().any(|cluster| cluster.caches_asked);
        let shards_known = asked || self.snapshot.of_type(CACHE_SHARD_TYPE).is_some();
        let mut shards = take(&mut self.snapshot, CACHE_SHARD_TYPE);
        if self.configured {
            tables.retain(|name, _| self.clusters.contains_key(name));
            let clusters = self.clusters.iter();
            let names = clusters.flat_map(|(name, cluster)| shard_names(name, cluster));
            let names: BTreeSet<String> = names.collect();
            shards.retain(|name, _| names.contains(name));
        }
        let mut clusters = std::mem::take(&mut self.clusters);
        for (name, cluster) in &mut clusters {
            let missing = cluster.is_unknown(now);
            self.events.push(Event::TableMissing {
                cluster: name.clone(),
                missing,
            });
            if missing || cluster.resumes() {
                // Proxies keep the table and the shards that they have, and know their age. One that comes now would take
                // an old one for new.
                if cluster.has_outlived_its_table(now) {
                    tables.remove(name);
                }
                tables.entry(name.clone()).or_insert_with(Resource::unknown);
            }
            if missing || cluster.resumes() || !cluster.caches_asked {
                for name in shard_names(name, cluster) {
                    shards.entry(name).or_insert_with(Resource::unknown);
                }
            }
            if cluster.caches_asked && !missing {
                self.build_shards(name, cluster, now, &mut shards);
            }
            if cluster.is_due(now) {
                let table = self.build_table(name, cluster, now, unix_ms);
                tables.insert(name.clone(), table);
            }
        }
        self.clusters = clusters;
        let resources = &mut self.snapshot.resources;
        resources.insert(HOST_TABLE_TYPE, Arc::new(tables));
        if shards_known {
            resources.insert(CACHE_SHARD_TYPE, Arc::new(shards));
        }
        self.publish_standalone(now);
        self.configured = false;
        Some(Arc::new(self.snapshot.clone()))
    }

    fn has_old_table(&self, name: &str, cluster: &Cluster, now: Duration) -> bool {
        self.snapshot.get(HOST_TABLE_TYPE, name).is_some() && cluster.has_outlived_its_table(now)
    }

    fn is_due(&self, cluster: &Cluster, now: Duration) -> bool {
        let shards_due = cluster.caches_asked && cluster.holdings.is_changed(now);
        cluster.is_due(now) || shards_due && !cluster.is_unknown(now)
    }

    fn next_meta(&mut self) -> Meta {
        self.version += 1;
        Meta {
            epoch: self.epoch,
            version: self.version,
        }
    }

    fn build_shards(
        &mut self,
        name: &str,
        cluster: &mut Cluster,
        now: Duration,
        shards: &mut Resources,
    ) {
        let count = cluster.holdings.shards();
        for shard in cluster.holdings.take_changed(now) {
            let meta = self.next_meta();
            let message = tables::cache_shard(&cluster.holdings, &cluster.costs, shard, meta);
            let resource = tables::resource(meta, &message);
            let (bytes, rate) = (resource.body.len(), self.settings.cache_bytes_per_second);
            cluster.holdings.rest(shard, now, bytes, rate);
            shards.insert(cache_shard_name(name, count, shard), resource);
            self.events.push(Event::ShardBuilt {
                cluster: name.to_owned(),
            });
        }
    }

    fn build_table(
        &mut self,
        name: &str,
        cluster: &mut Cluster,
        now: Duration,
        unix_ms: u64,
    ) -> Resource {
        cluster.proxies = u32::try_from(self.ledger.proxies()).unwrap_or(u32::MAX);
        let meta = self.next_meta();
        let message = tables::host_table(name, cluster, meta, now, unix_ms);
        let resource = tables::resource(meta, &message);
        let (bytes, rate) = (resource.body.len(), self.settings.table_bytes_per_second);
        cluster.was_built(now, bytes, rate);
        let panics = cluster.panics();
        if std::mem::replace(&mut cluster.panicked, panics) != panics {
            self.events.push(Event::PanicMode {
                cluster: name.to_owned(),
                panics,
            });
        }
        self.events.push(Event::TableBuilt {
            cluster: name.to_owned(),
            unix_ms,
        });
        resource
    }

    fn publish_standalone(&mut self, now: Duration) {
        let Some(standalone) = &self.settings.standalone else {
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
            let unknown = self.clusters.iter();
            for (name, _) in unknown.filter(|(_, known)| known.is_unknown(now)) {
                let last = self.snapshot.get(ENDPOINTS, name).cloned();
                let last = last.unwrap_or_else(Resource::unknown);
                Arc::make_mut(endpoints).insert(name.clone(), last);
            }
            self.snapshot.resources.extend(resources);
            self.endpoints = clusters;
        }
    }
}

fn take(snapshot: &mut Snapshot, kind: &'static str) -> Resources {
    snapshot
        .resources
        .remove(kind)
        .map(Arc::unwrap_or_clone)
        .unwrap_or_default()
}

/// Names of a cluster's shards.
pub(super) fn shard_names<'a>(
    name: &'a str,
    cluster: &Cluster,
) -> impl Iterator<Item = String> + use<'a> {
    let shards = cluster.holdings.shards();
    (0..shards).map(move |shard| cache_shard_name(name, shards, shard))
}

fn endpoints(name: &str, cluster: &Cluster) -> ClusterHosts {
    let health_ignored = cluster.health_ignored();
    let health = |host| match cluster.state_of(host, health_ignored) {
        HostState::Up => Health::Up,
        HostState::Draining => Health::Draining,
        HostState::Down => Health::Down,
    };
    let address = |host: &Host| host.config.address.parse::<SocketAddr>().ok();
    let hosts = cluster
        .hosts
        .values()
        .filter_map(|host| Some((address(host)?, health(host))));
    ClusterHosts {
        name: name.to_owned(),
        hosts: hosts.collect(),
    }
}
