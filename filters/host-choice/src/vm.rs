// SPDX-License-Identifier: Apache-2.0
//! What one VM knows: its clusters with their decoded tables, and its peers.

mod bounces;
mod cluster;
mod clusters;
mod contents;
mod feedback;
mod hedges;
mod held;
mod in_flight;
mod peer;
mod peers;
mod prefill;
mod publish;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::{Rc, Weak};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use weir_policy::overload::breakwater;
use weir_policy::{
    Cluster, Decision, HostId, Occupancy, Outcome, Overload, Patience, Ranked, Request,
};
use weir_tables::parse_cache_shard_name;

use cluster::ClusterState;
use clusters::Clusters;
use peer::Peer;

use crate::abandoned::AbandonedQueue;
use crate::config::{Config, Role};
use crate::host::{Destination, Host, LogLevel};
use crate::index::{Index, Kind};
use crate::metrics::Metrics;
use crate::reading::Readings;
use crate::tries::Tries;
use crate::watch::{End, Watch};
use crate::{destination, receipt, shared, watch};

/// How often a VM writes its record, at most. Others see its requests in flight that much later.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(100);

/// How requests of a cluster may come to a second host.
#[derive(Clone, Copy)]
pub(crate) struct Second {
    /// Some are hedged.
    pub(crate) hedges: bool,
    /// Attempts are looked after, so that hosts may give them back.
    pub(crate) bounces: bool,
    /// Hosts give credits.
    pub(crate) credits: bool,
}

/// What is to be done with a request.
pub(crate) struct Decided {
    pub(crate) decision: Decision,
    pub(crate) patience: Patience,
    pub(crate) second: Second,
    /// None of most requests.
    pub(crate) watch: Option<Box<Watch>>,
}

pub(crate) struct Vm<H> {
    pub(crate) host: H,
    /// Drawn by each life; never 0.
    pub(crate) id: u64,
    pub(crate) metrics: Metrics,
    slot: Option<u32>,
    rng: SmallRng,
    clusters: Clusters,
    /// The generation of each root that can keep streams.
    contenders: BTreeMap<u32, u64>,
    /// Hashes of the configurations that came to this VM.
    configured: BTreeSet<u64>,
    index: Index,
    index_cas: Option<u32>,
    /// By slot, which record was read last.
    peers: BTreeMap<u32, Peer>,
    published: Duration,
    /// What was told then of keys, encoded ([`crate::stored`]).
    earlier: Vec<u8>,
    /// Which root looked last at who waits, and when.
    released: Option<(u32, Duration)>,
    /// Whether the want of a slot was logged.
    slotless: bool,
    /// Whether it was logged that a caller is not believed.
    disbelieves: bool,
    /// Bytes that decoded cache contents may take, by the newest configuration.
    cache_limit: usize,
    /// The proxy's own, by the newest configuration; empty where unknown.
    zone: String,
    /// Requests that went away without an end.
    abandoned: AbandonedQueue,
    /// Requests whose bodies are being read.
    pub(crate) readings: Readings,
    /// By id, requests whose attempts are looked after.
    tries: BTreeMap<u64, Weak<Tries>>,
    /// Of the host behind this proxy.
    pub(crate) occupancy: Occupancy,
    /// That this VM gives for that host.
    pub(crate) credits: breakwater::Pool,
    /// The value that named hosts last: its memory is for the next.
    destination: String,
}

impl<H: Host> Vm<H> {
    pub(crate) fn new(host: H) -> Self {
        Self {
            id: host.random().max(1),
            metrics: Metrics::define(&host),
            slot: None,
            rng: SmallRng::seed_from_u64(host.random()),
            clusters: Clusters::default(),
            contenders: BTreeMap::new(),
            configured: BTreeSet::new(),
            index: Index::default(),
            index_cas: None,
            peers: BTreeMap::new(),
            published: Duration::ZERO,
            earlier: Vec::new(),
            released: None,
            slotless: false,
            disbelieves: false,
            cache_limit: usize::MAX,
            zone: String::new(),
            abandoned: AbandonedQueue::default(),
            readings: Readings::default(),
            tries: BTreeMap::new(),
            occupancy: Occupancy::default(),
            credits: breakwater::Pool::default(),
            destination: String::new(),
            host,
        }
    }

    /// A root has this configuration now. Says whether some root of this VM had it before.
    pub(crate) fn configured(&mut self, hash: u64, config: &Config, now: Duration) -> bool {
        for (table, cluster) in config.tables() {
            let Some(state) = self.clusters.add(table) else {
                continue;
            };
            match config.role {
                Role::Attempt => state.bounces.attempts += 1,
                Role::Caller | Role::Host => {
                    state.roots += 1;
                    state.salted(&self.host, cluster.salt.as_ref(), table);
                }
            }
        }
        if config.role == Role::Caller {
            self.cache_limit = config.cache_limit;
            let zone = config.zone.clone();
            let zone = zone.unwrap_or_else(|| self.host.zone());
            if zone != self.zone {
                self.zone = zone;
                let states = self.clusters.iter_mut();
                states.for_each(|(_, state)| state.see_table_anew());
            }
        }
        // All are read anew: those that are not wanted by anybody are not kept up to date.
        self.index_cas = None;
        self.read_resources(now);
        !self.configured.insert(hash)
    }

    /// A root can keep streams to weir-control.
    pub(crate) fn add_contender(&mut self, root: u32, generation: u64) {
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
        for (table, _) in config.tables() {
            if let Some(state) = self.clusters.get_mut(table) {
                let roots = match config.role {
                    Role::Attempt => &mut state.bounces.attempts,
                    Role::Caller | Role::Host => &mut state.roots,
                };
                *roots = roots.saturating_sub(1);
            }
        }
    }

    /// Looks at shared data: new tables, what the peers do; and writes the own record.
    pub(crate) fn tick(&mut self, now: Duration) {
        self.wake();
        self.take_back();
        self.read_resources(now);
        // Roots of one VM share it: the first to tick does the work.
        if now.saturating_sub(self.published) >= PUBLISH_INTERVAL {
            self.meet(now);
        }
    }

    /// Nothing is under way, and no tick comes until something is: writes the own record. Says where that is.
    pub(crate) fn idle(&mut self, now: Duration) -> Option<String> {
        self.take_back();
        match now.saturating_sub(self.published) >= PUBLISH_INTERVAL {
            true => self.meet(now),
            false => self.publish_again(now),
        }
        // It does not hear that they are replaced, and every VM that sleeps would keep its own of another time.
        if self.host.contents().is_some() {
            self.clusters.iter_mut().for_each(|(_, state)| state.rest());
        }
        self.slot.map(shared::record_key)
    }

    /// Something is under way again, or has been all the time.
    pub(crate) fn wake(&mut self) {
        if let Some(all) = self.host.contents() {
            let clusters = self.clusters.iter_mut();
            clusters.for_each(|(name, state)| state.wake(name, all));
        }
    }

    /// Shows the own record to the others, and looks at theirs.
    fn meet(&mut self, now: Duration) {
        self.published = now;
        let slots = shared::slots(&self.host);
        self.publish(&slots, now);
        self.read_peers(&slots, now);
    }

    /// Reads what the index says is new.
    pub(crate) fn read_resources(&mut self, now: Duration) {
        let Some((index, cas)) = shared::index(&self.host, self.index_cas) else {
            return;
        };
        self.index_cas = Some(cas);
        for (name, state) in self.clusters.iter_mut() {
            // Tables first: a shard is understood only beside its table.
            match index.get(Kind::Table, name) {
                Some(entry) => state.read_table(&self.host, &self.zone, entry, now),
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
                state.read_shard(&self.host, entry, shards_of_it, shard);
            }
        }
        for (_, state) in self.clusters.iter_mut() {
            state.forget_shards_except(&shards);
        }
        self.index = index;
    }

    fn named_clusters(&self) -> impl Iterator<Item = (&Rc<str>, &ClusterState)> {
        self.clusters.iter().filter(|(_, state)| state.roots > 0)
    }

    /// The index as of the last tick, and the number that changes with it.
    pub(crate) fn index(&self) -> (&Index, Option<u32>) {
        (&self.index, self.index_cas)
    }

    /// What to do with a request for a cluster; none where the cluster is not configured. `deadline` says when its caller
    /// gives up, and `random` is a uniform number.
    pub(crate) fn decide(
        &mut self,
        table: &Rc<str>,
        request: &Request,
        (now, random): (Duration, u64),
        deadline: impl FnOnce() -> Option<Duration>,
    ) -> Option<Decided> {
        self.take_back();
        let state = self.clusters.get_mut(table)?;
        state.counters.offered(request.rank);
        let policy = state.cluster.table().map(|table| table.policy());
        let holds = policy.is_some_and(|policy| policy.holding.is_on());
        let second = Second {
            hedges: policy.is_some_and(|policy| policy.hedging.is_on()),
            bounces: state.bounces.attempts > 0,
            credits: policy.is_some_and(|policy| matches!(policy.overload, Overload::Breakwater)),
        };
        let (mut watch, leaves_receipt) = match policy {
            Some(policy) => watch::of(policy, table, request, (now, random)),
            None => (None, false),
        };
        let before = leaves_receipt.then(|| self.rng.clone());
        let is_left = watch.as_ref().is_some_and(|watch| !watch.is_steered);
        let mut patience = Patience::new(now);
        let decision = if holds && !is_left {
            patience.deadline = deadline();
            let held = &mut state.held;
            held.decide(&state.cluster, request, patience, now, &mut self.rng)
        } else {
            state.cluster.decide(request, now, &mut self.rng)
        };
        if let (Some(watch), Some(mut before)) = (&mut watch, before) {
            let known = (&state.cluster, state.meta);
            let made = match &decision.outcome {
                Outcome::Send(ranked) => ranked.first(),
                _ => None,
            };
            let cluster = &state.cluster;
            let beside = made.and_then(|made| cluster.beside(request, made, now, &mut self.rng));
            let account = cluster.account(request, &decision, now, &mut before);
            let made = (&decision, account, beside);
            let drawn = (rand::Rng::next_u64(&mut self.rng), now);
            watch.receipt = Some(receipt::of(known, request, made, drawn));
        }
        self.metrics.decided(&self.host, &state.cluster, &decision);
        Some(Decided {
            decision,
            patience,
            second,
            watch,
        })
    }

    /// A watched request has ended.
    #[inline(never)]
    pub(crate) fn watched(&mut self, watch: Watch, end: End) {
        let now = self.host.now();
        if let Some(state) = self.clusters.get_mut(&watch.table) {
            state.counters.watched(watch, end, now);
        }
    }

    /// The address of a host of the cluster.
    #[inline]
    pub(crate) fn address(&self, table: &str, host: HostId) -> Option<&str> {
        let table = self.cluster(table)?.table()?;
        let row = table.host(table.index_of(host)?)?;
        Some(&row.address)
    }

    /// A caller who is not trusted said something of its request.
    #[inline(never)]
    pub(crate) fn disbelieves(&mut self) {
        self.metrics.disbelieved.increment(&self.host);
        if !std::mem::replace(&mut self.disbelieves, true) {
            let words = "a caller's x-weir headers were removed, so its requests have no key and no priority: `trust` in the \
                 plugin configuration says who is believed";
            self.host.log(LogLevel::Warn, words);
        }
    }

    /// The first of these hosts, and what Envoy is told of them all; none where they cannot be named.
    pub(crate) fn destination(
        &mut self,
        table: &str,
        hosts: &Ranked,
    ) -> Option<(HostId, Destination<'_>)> {
        let cluster = &self.clusters.get(table)?.cluster;
        let (first, state) = destination::name(cluster, hosts, &mut self.destination)?;
        let hosts = &self.destination;
        Some((first, Destination { hosts, state }))
    }

    /// A uniform number.
    pub(crate) fn random(&mut self) -> u64 {
        rand::Rng::next_u64(&mut self.rng)
    }

    /// Requests at the host behind this proxy, of all VMs.
    pub(crate) fn inbound(&self) -> u64 {
        self.metrics.inbound.get(&self.host)
    }

    /// The cluster as it is known here.
    pub(crate) fn cluster(&self, table: &str) -> Option<&Cluster> {
        self.clusters.get(table).map(|state| &state.cluster)
    }
}
