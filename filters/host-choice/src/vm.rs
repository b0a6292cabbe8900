// SPDX-License-Identifier: Apache-2.0
//! What one VM knows: its clusters with their decoded tables, and its peers.

mod cluster;
mod contents;
mod hedges;
mod held;
mod peers;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use weir_policy::{Answer, Cluster, Decision, HostId, KeyHash, Keys, Load, Patience, Request};
use weir_tables::{parse_cache_shard_name, v1};

use cluster::ClusterState;
use peers::Peer;

use crate::config::Config;
use crate::hostcalls::{self, LogLevel};
use crate::index::{Index, Kind};
use crate::metrics::Metrics;
use crate::orca::Spent;
use crate::record::Ending;
use crate::shared;

/// How often a VM writes its record, at most. Others see its requests in flight that much later.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(100);
/// A record that was not renewed for this long is a dead VM's; thirty missed writes.
const RECORD_LIFETIME: Duration = Duration::from_secs(3);

pub(crate) struct Vm {
    /// Drawn by each life; never 0.
    pub(crate) id: u64,
    pub(crate) metrics: Metrics,
    slot: Option<u32>,
    rng: SmallRng,
    clusters: BTreeMap<String, ClusterState>,
    /// The generation of each root that can keep streams.
    contenders: BTreeMap<u32, u64>,
    /// Hashes of the configurations that came to this VM.
    configured: BTreeSet<u64>,
    index: Index,
    index_cas: Option<u32>,
    /// By slot, which record was read last.
    peers: BTreeMap<u32, Peer>,
    published: Duration,
    /// Which root looked last at who waits, and when.
    released: Option<(u32, Duration)>,
    /// Whether the want of a slot was logged.
    slotless: bool,
    /// Bytes that decoded cache contents may take, by the newest configuration.
    cache_limit: usize,
}

thread_local! {
    static VM: RefCell<Option<Vm>> = const { RefCell::new(None) };
}

/// Runs `f` on the VM's state, which is made at first use.
pub(crate) fn with<T>(f: impl FnOnce(&mut Vm) -> T) -> Option<T> {
    VM.with(|vm| {
        let mut vm = vm.try_borrow_mut().ok()?;
        Some(f(vm.get_or_insert_with(Vm::new)))
    })
}

impl Vm {
    fn new() -> Self {
        Self {
            id: hostcalls::random().max(1),
            metrics: Metrics::define(),
            slot: None,
            rng: SmallRng::seed_from_u64(hostcalls::random()),
            clusters: BTreeMap::new(),
            contenders: BTreeMap::new(),
            configured: BTreeSet::new(),
            index: Index::default(),
            index_cas: None,
            peers: BTreeMap::new(),
            published: Duration::ZERO,
            released: None,
            slotless: false,
            cache_limit: usize::MAX,
        }
    }

    /// A root has this configuration now. Says whether some root of this VM had it before.
    pub(crate) fn configured(&mut self, hash: u64, config: &Config, now: Duration) -> bool {
        for cluster in config.clusters.values() {
            let state = self.clusters.entry(cluster.table.to_string()).or_default();
            state.roots += 1;
            state.salted(cluster.salt.as_ref(), &cluster.table);
        }
        self.cache_limit = config.cache_limit;
        // All are read anew: those that are not wanted by anybody are not kept up to date.
        self.index_cas = None;
        self.read_resources(now);
        !self.configured.insert(hash)
    }

    /// A root can keep streams to weir-control.
    pub(crate) fn enter(&mut self, root: u32, generation: u64) {
        self.contenders.insert(root, generation);
    }

    /// Whether the root is the one of this VM that tries for the lease: the newest.
    pub(crate) fn contends(&self, root: u32) -> bool {
        let order = |(root, generation): (&u32, &u64)| (*generation, *root);
        let newest = self.contenders.iter().map(order).max();
        newest.is_some_and(|(_, newest)| newest == root)
    }

    /// A root with this configuration is gone.
    pub(crate) fn retired(&mut self, root: u32, config: &Config) {
        self.contenders.remove(&root);
        for cluster in config.clusters.values() {
            if let Some(state) = self.clusters.get_mut(&*cluster.table) {
                state.roots = state.roots.saturating_sub(1);
            }
        }
    }

    /// Looks at shared data: new tables, what the peers do; and writes the own record.
    pub(crate) fn tick(&mut self, now: Duration) {
        self.read_resources(now);
        // Roots of one VM share it: the first to tick does the work.
        if now.saturating_sub(self.published) >= PUBLISH_INTERVAL {
            self.published = now;
            let slots = shared::slots();
            self.publish(&slots, now);
            self.read_peers(&slots, now);
        }
    }

    /// Reads what the index says is new.
    pub(crate) fn read_resources(&mut self, now: Duration) {
        let Some((index, cas)) = shared::index(self.index_cas) else {
            return;
        };
        self.index_cas = Some(cas);
        for (name, state) in &mut self.clusters {
            // Tables first: a shard is understood only beside its table.
            match index.get(Kind::Table, name) {
                Some(entry) => state.read_table(entry, now),
                None => state.remove_table(),
            }
        }
        self.fit_contents(&index, now);
        let mut shards: BTreeSet<&str> = BTreeSet::new();
        for entry in index.entries.iter().filter(|entry| entry.is_shard) {
            let Ok((cluster, shards_of_it, shard)) = parse_cache_shard_name(&entry.name) else {
                continue;
            };
            if let Some(state) = self.clusters.get_mut(cluster) {
                shards.insert(&entry.name);
                state.read_shard(entry, shards_of_it, shard);
            }
        }
        for state in self.clusters.values_mut() {
            state.forget_shards_except(&shards);
        }
        self.index = index;
    }

    fn publish(&mut self, slots: &[u64], now: Duration) {
        // A VM that was silent for longer than a record lives may have lost its slot to a new one.
        let held = |slot: &u32| slots.get(*slot as usize) == Some(&self.id);
        let slot = self.slot.filter(held);
        self.slot = slot.or_else(|| shared::claim_slot(self.id, now));
        if self.slot.is_none() && !self.slotless {
            self.slotless = true;
            hostcalls::log(
                LogLevel::Warn,
                "no slot in shared data: this VM's requests are not reported",
            );
        }
        self.clusters
            .values_mut()
            .for_each(|state| state.judge_heed(now));
        let stale = self
            .named_clusters()
            .filter(|(_, state)| state.cluster.is_stale(now))
            .count();
        self.metrics.stale_tables.set(stale as u64);
        if let Some(slot) = self.slot {
            let record = self.record(slot, now);
            shared::set_record(slot, &record);
        }
    }

    fn record(&mut self, slot: u32, now: Duration) -> v1::VmRecord {
        let named = self
            .clusters
            .iter_mut()
            .filter(|(_, state)| state.roots > 0);
        let clusters = named.map(|(name, state)| state.counters.record(name, &state.cluster, now));
        let clusters = clusters.collect();
        v1::VmRecord {
            clusters,
            ..self.head(slot, now)
        }
    }

    /// Its record of a time, but for what it counted.
    fn head(&self, slot: u32, published: Duration) -> v1::VmRecord {
        v1::VmRecord {
            slot,
            epoch: self.id,
            published_ns: published.as_nanos() as u64,
            deadline_ns: (published + RECORD_LIFETIME).as_nanos() as u64,
            clusters: Vec::new(),
        }
    }

    fn named_clusters(&self) -> impl Iterator<Item = (&String, &ClusterState)> {
        self.clusters.iter().filter(|(_, state)| state.roots > 0)
    }

    /// The index as of the last tick, and the number that changes with it.
    pub(crate) fn index(&self) -> (&Index, Option<u32>) {
        (&self.index, self.index_cas)
    }

    /// What to do with a request for a cluster, how long it may wait, and whether some of its requests are
    /// hedged; none where the cluster is not configured. `deadline` says when its caller gives up.
    pub(crate) fn decide(
        &mut self,
        table: &str,
        request: &Request,
        now: Duration,
        deadline: impl FnOnce() -> Option<Duration>,
    ) -> Option<(Decision, Patience, bool)> {
        let state = self.clusters.get_mut(table)?;
        state.counters.offered(request.rank);
        let policy = state.cluster.table().map(|table| table.policy());
        let holds = policy.is_some_and(|policy| policy.holding.is_on());
        let hedges = policy.is_some_and(|policy| policy.hedging.is_on());
        let mut patience = Patience::new(now);
        let decision = if holds {
            patience.deadline = deadline();
            let held = &mut state.held;
            held.decide(&state.cluster, request, patience, now, &mut self.rng)
        } else {
            state.cluster.decide(request, now, &mut self.rng)
        };
        self.metrics.decided(decision.reason);
        Some((decision, patience, hedges))
    }

    /// A uniform number.
    pub(crate) fn random(&mut self) -> u64 {
        rand::Rng::next_u64(&mut self.rng)
    }

    /// The cluster as it is known here.
    pub(crate) fn cluster(&self, table: &str) -> Option<&Cluster> {
        self.clusters.get(table).map(|state| &state.cluster)
    }

    /// A request goes to a host.
    pub(crate) fn assigned(&mut self, table: &str, host: HostId, request: &Request, now: Duration) {
        let Some(state) = self.clusters.get_mut(table) else {
            return;
        };
        if let Some(table) = state.cluster.table()
            && let Some(row) = table.index_of(host).and_then(|index| table.host(index))
        {
            let overload = table.policy().overload;
            let rank = request.rank;
            state.counters.assigned(host, &row.address, rank, overload);
        }
        state.cluster.assigned(host, request, now);
    }

    /// A request was refused by the filter.
    pub(crate) fn shed(&mut self, table: &str) {
        if let Some(state) = self.clusters.get_mut(table) {
            state.counters.shed();
        }
    }

    /// At its first attempt a request went to another host than the one that was named.
    pub(crate) fn missed(&mut self, table: &str, named: HostId, other: HostId, now: Duration) {
        let Some(state) = self.clusters.get_mut(table) else {
            return;
        };
        let (counts, was_heeded) = (state.missed(named, other), state.cluster.is_heeded());
        if counts {
            self.metrics.choices_ignored.increment();
        }
        state.judge_heed(now);
        if was_heeded && !state.cluster.is_heeded() {
            let words = "Envoy does not send requests where the filter says, so nothing is shed: see that the \
                 cluster has the override_host policy, and the addresses of the table, of ";
            hostcalls::log(LogLevel::Warn, &[words, table].concat());
        }
    }

    /// A host did not take a request for the keys that was sent then. Where Envoy goes its own way nobody knows which.
    pub(crate) fn failed(
        &mut self,
        table: &str,
        keys: &Keys,
        (host, sent): (HostId, Duration),
        now: Duration,
    ) {
        if let Some(state) = self.clusters.get_mut(table)
            && state.cluster.is_heeded()
        {
            let is_out = state.cluster.failed(host, keys, sent, now);
            state.counters.failed(host);
            self.avoids(is_out, table, host);
        }
    }

    /// A host did not answer in time what was sent for the keys then.
    pub(crate) fn timed_out(
        &mut self,
        table: &str,
        keys: &Keys,
        (host, sent): (HostId, Duration),
        now: Duration,
    ) {
        if let Some(state) = self.clusters.get_mut(table)
            && state.cluster.is_heeded()
        {
            let is_out = state.cluster.timed_out(host, keys, sent, now);
            self.avoids(is_out, table, host);
        }
    }

    /// One request failed at both hosts.
    pub(crate) fn failed_at_both(
        &mut self,
        table: &str,
        keys: &Keys,
        hosts: [HostId; 2],
        now: Duration,
    ) {
        if let Some(state) = self.clusters.get_mut(table) {
            state.cluster.failed_at_both(hosts, keys, now);
        }
    }

    /// Tells operators of a host that gets no requests for a while. That is at most once in its doubling time.
    fn avoids(&self, is_out: bool, table: &str, host: HostId) {
        if !is_out {
            return;
        }
        self.metrics.failing_hosts.increment();
        let row = self.cluster(table).and_then(Cluster::table);
        let row = row.and_then(|table| table.host(table.index_of(host)?));
        let address = row.map_or("", |row| row.address.as_str());
        hostcalls::log(
            LogLevel::Warn,
            &[
                address,
                " of ",
                table,
                " fails what other hosts do: they come first",
            ]
            .concat(),
        );
    }

    /// A host answers what was sent for the keys then, perhaps with its load. The time counts if it answers that it
    /// failed.
    pub(crate) fn answered(
        &mut self,
        table: &str,
        keys: &Keys,
        (host, sent): (HostId, Duration),
        (answer, now): (Answer, Duration),
        load: Option<Load>,
    ) {
        let Some(state) = self.clusters.get_mut(table) else {
            return;
        };
        let is_out = state.cluster.answered(host, keys, sent, answer, now);
        if let Some(load) = load {
            let now = load.observed;
            state.counters.observed(host, load.clone());
            state.cluster.observed(host, load, now);
        }
        self.avoids(is_out, table, host);
    }

    /// A host says what a request for the key has cost it. Only one way of choosing wants to know.
    pub(crate) fn spent(
        &mut self,
        table: &str,
        host: HostId,
        key: KeyHash,
        spent: Spent,
        now: Duration,
    ) {
        if let Some(state) = self.clusters.get_mut(table)
            && state.cluster.estimates()
        {
            state.counters.spent(host, key, spent, now);
        }
    }

    /// A request that was sent to a host has ended.
    pub(crate) fn ended(&mut self, table: &str, host: HostId, sent: Duration, ending: Ending) {
        if let Some(state) = self.clusters.get_mut(table) {
            let now = match state.cluster.estimates() {
                true => hostcalls::monotonic(),
                false => sent,
            };
            state.cluster.finished(host, sent, now);
            state.counters.ended(host, ending);
        }
    }
}
