// SPDX-License-Identifier: Apache-2.0
//! What may happen to a cluster, and a naive account of it to compare decisions with.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use weir_policy::overload::dynamic_breaker;
use weir_policy::{
    Answer, Assignment, Cluster, Host, HostState, Keys, Level, Load, Overload, Policy, Rank,
    Request, Selection,
};

use crate::fleet::{cache, host, id, key, load, millis, request, table};

/// Fleets that dynamic selection sees whole.
pub(crate) const HOSTS: usize = 16;
pub(crate) const KEYS: u64 = 6;
/// The hosts that a key is assumed cached at, at most.
const ASSUMED_HOSTS: usize = 4;
const SUSPECT_FOR: Duration = Duration::from_secs(1);

#[derive(Clone, Debug)]
pub(crate) enum Event {
    /// Received so long ago.
    Table(Duration, Box<Policy>, Vec<Row>),
    TableRemoved,
    Cache(BTreeMap<u64, BTreeMap<usize, bool>>),
    Assigned(usize, Vec<u64>),
    /// So long ago.
    AssignedByPeer(usize, u64, Duration),
    Finished(usize),
    /// So long ago.
    Observed(usize, Duration, u32, u32),
    /// With an answer of now.
    Credited(usize, u32),
    Failed(usize),
    Answered(usize),
    PeersInFlight(BTreeMap<usize, u32>),
}

#[derive(Clone, Debug)]
pub(crate) struct Row {
    number: usize,
    state: HostState,
    level: Level,
    /// Age when the table came, in progress, queued.
    load: Option<(Duration, u32, u32)>,
    speed_permille: u32,
    /// For how long it stays, since the table came.
    stays: Option<Duration>,
}

fn policies(selection: impl Strategy<Value = Selection>) -> impl Strategy<Value = Policy> {
    (
        overloads(),
        selection,
        0u64..20_000,
        500u64..8000,
        1usize..=8,
        (0u64..5000, prop_oneof![Just(0u32), Just(50), 0u32..=100]),
    )
        .prop_map(
            |(overload, selection, assumed_cached, stale_after, ranked_hosts, rest)| {
                let (retry_after, panic_threshold) = rest;
                Policy {
                    overload,
                    selection,
                    assumed_cached: millis(assumed_cached),
                    stale_after: millis(stale_after),
                    ranked_hosts,
                    retry_after: millis(retry_after),
                    panic_threshold,
                    ..Policy::default()
                }
            },
        )
}

fn overloads() -> impl Strategy<Value = Overload> {
    let params = (0u32..200, 1u64..5000, 0u32..20);
    (prop::sample::select(&Overload::ALL), params).prop_map(|(overload, params)| {
        let (queued_jobs, wait_ms, least_queued_jobs) = params;
        match overload {
            Overload::Breaker { .. } => Overload::Breaker { queued_jobs },
            Overload::DynamicBreaker(_) => Overload::DynamicBreaker(dynamic_breaker::Params {
                queued_jobs,
                wait: millis(wait_ms),
                least_queued_jobs,
            }),
            Overload::None | Overload::Dagor | Overload::Breakwater | Overload::Slots => overload,
        }
    })
}

pub(crate) fn selections() -> impl Strategy<Value = Selection> + Clone {
    prop::sample::select(&Selection::ALL)
}

/// Hosts where nothing waits are as many as others.
fn queued() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), 0u32..250]
}

fn rows() -> impl Strategy<Value = Vec<Row>> {
    let state = prop_oneof![
        6 => Just(HostState::Up),
        1 => Just(HostState::Draining),
        1 => Just(HostState::Down),
    ];
    let level = prop_oneof![Just(0u16), Just(4096), 0u16..=4096].prop_map(Level::admitting);
    let load = prop::option::of(((0u64..9000).prop_map(millis), 0u32..30, queued()));
    let speed = prop::sample::select(vec![0, 0, 0, 1000, 500, 2000]);
    let stays = prop::option::weighted(0.1, (0u64..4000).prop_map(millis));
    let row = (state, level, load, speed, stays);
    prop::collection::btree_map(0..HOSTS, row, 0..=HOSTS).prop_map(|rows| {
        let row = |(number, (state, level, load, speed_permille, stays))| Row {
            number,
            state,
            level,
            load,
            speed_permille,
            stays,
        };
        rows.into_iter().map(row).collect()
    })
}

fn tables(policy: impl Strategy<Value = Policy>) -> impl Strategy<Value = Event> {
    ((0u64..3000).prop_map(millis), policy, rows())
        .prop_map(|(ago, policy, rows)| Event::Table(ago, Box::new(policy), rows))
}

/// What happens, each after a pause; the first event is a table.
pub(crate) fn histories(
    selection: impl Strategy<Value = Selection> + Clone + 'static,
) -> impl Strategy<Value = Vec<(Duration, Event)>> {
    let held = prop::collection::btree_map(0..HOSTS, any::<bool>(), 0..6);
    let event = prop_oneof![
        4 => tables(policies(selection.clone())),
        1 => Just(Event::TableRemoved),
        3 => prop::collection::btree_map(0..KEYS, held, 0..6).prop_map(Event::Cache),
        12 => (0..HOSTS, prop::collection::vec(0..KEYS, 0..4))
            .prop_map(|(host, keys)| Event::Assigned(host, keys)),
        3 => (0..HOSTS, 0..KEYS, (0u64..20_000).prop_map(millis))
            .prop_map(|(host, key, ago)| Event::AssignedByPeer(host, key, ago)),
        8 => (0..HOSTS).prop_map(Event::Finished),
        6 => (0..HOSTS, (0u64..4000).prop_map(millis), 0u32..30, queued())
            .prop_map(|(host, ago, in_progress, queued)| Event::Observed(host, ago, in_progress, queued)),
        3 => (0..HOSTS, 0u32..4).prop_map(|(host, credits)| Event::Credited(host, credits)),
        3 => (0..HOSTS).prop_map(Event::Failed),
        2 => (0..HOSTS).prop_map(Event::Answered),
        1 => prop::collection::btree_map(0..HOSTS, 0u32..20, 0..4).prop_map(Event::PeersInFlight),
    ];
    let pause = prop_oneof![3 => 0u64..50, 1 => 0u64..3000].prop_map(millis);
    let first = tables(policies(selection)).prop_map(|table| (Duration::ZERO, table));
    (first, prop::collection::vec((pause, event), 0..60))
        .prop_map(|(first, rest)| std::iter::once(first).chain(rest).collect())
}

/// What is known of a host, as a list of everything that happened.
#[derive(Clone, Debug, Default)]
struct Known {
    load: Option<Load>,
    sent: Vec<Sent>,
    in_flight: u32,
    peers_in_flight: u32,
    suspect_until: Duration,
    /// And when they came.
    credits: Option<(u32, Duration)>,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    at: Duration,
    /// It was sent by `estimate` or to a slot, which keeps account of what has ended.
    expected: bool,
    ended: bool,
}

impl Known {
    /// When the oldest request in flight was sent, which ends now; none where nothing is in flight.
    fn end(&mut self) -> Option<Duration> {
        self.in_flight = self.in_flight.saturating_sub(1);
        let oldest = self.sent.iter_mut().find(|sent| !sent.ended)?;
        oldest.ended = true;
        Some(oldest.at)
    }

    /// To `estimate` a host that has told nothing is known by what is in flight alone: what has ended does not come
    /// beside its first load. What was sent by another policy may have ended for all that is known.
    fn forget_ended(&mut self) {
        if self.load.is_none() {
            let over = |sent: &Sent| sent.ended || !sent.expected;
            let over = self.sent.iter().take_while(|sent| over(sent)).count();
            self.sent.drain(..over);
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Received {
    pub(crate) policy: Policy,
    at: Duration,
    /// By number, only those in the table.
    pub(crate) hosts: BTreeMap<usize, Host>,
}

/// A cluster, and the naive account of it.
#[derive(Debug)]
pub(crate) struct World {
    pub(crate) cluster: Cluster,
    pub(crate) now: Duration,
    pub(crate) table: Option<Received>,
    known: BTreeMap<usize, Known>,
    failures: BTreeMap<usize, u32>,
    levels: BTreeMap<usize, Level>,
    /// Hosts that drain are chosen as well.
    pub(crate) panics: bool,
    cached: BTreeMap<u64, BTreeMap<usize, bool>>,
    assigned: BTreeMap<u64, BTreeMap<usize, Duration>>,
    assumed_cached: Option<Duration>,
}

impl World {
    pub(crate) fn new(now: Duration) -> Self {
        Self {
            cluster: Cluster::default(),
            now,
            table: None,
            known: BTreeMap::new(),
            failures: BTreeMap::new(),
            levels: BTreeMap::new(),
            panics: false,
            cached: BTreeMap::new(),
            assigned: BTreeMap::new(),
            assumed_cached: None,
        }
    }

    pub(crate) fn after(&mut self, pause: Duration, event: Event) {
        // No two events are at one time, so that the newest of them is never in doubt.
        self.now += pause + Duration::from_micros(1);
        let now = self.now;
        match event {
            Event::Table(ago, policy, rows) => self.receive(now - ago, *policy, rows),
            Event::TableRemoved => {
                self.cluster.remove_table();
                self.table = None;
                self.cached.clear();
                self.levels.clear();
                self.panics = false;
                self.forget_departed();
            }
            Event::Cache(contents) => {
                let held = |(name, held): (&u64, &BTreeMap<usize, bool>)| {
                    (
                        key(*name),
                        held.iter()
                            .map(|(host, assumed)| (*host, *assumed))
                            .collect(),
                    )
                };
                self.cluster
                    .set_cache_shard(0, cache(contents.iter().map(held).collect()));
                if self.table.is_some() {
                    self.cached = contents;
                }
            }
            Event::Assigned(host, names) => {
                let keys: Vec<_> = names.iter().map(|name| key(*name)).collect();
                let request = Request {
                    keys: Keys::new(keys),
                    ..request(None)
                };
                self.cluster.assigned(id(host), &request, now);
                let estimates = self.estimates();
                if self.has(host) {
                    let known = self.known.entry(host).or_default();
                    known.in_flight += 1;
                    known.sent.push(Sent {
                        at: now,
                        expected: estimates,
                        ended: false,
                    });
                    for name in names {
                        self.assigned.entry(name).or_default().insert(host, now);
                    }
                    self.level_by_in_flight(host);
                }
            }
            Event::AssignedByPeer(host, name, ago) => {
                let at = now - ago;
                self.cluster.assigned_by_peer(Assignment {
                    key: key(name),
                    host: id(host),
                    at,
                });
                if self.table.is_some() {
                    let newest = self
                        .assigned
                        .entry(name)
                        .or_default()
                        .entry(host)
                        .or_default();
                    *newest = at.max(*newest);
                }
            }
            Event::Finished(host) => {
                let estimates = self.estimates();
                let known = self.known.get_mut(&host);
                let sent = known.and_then(|known| {
                    let sent = known.end();
                    if estimates {
                        known.forget_ended();
                    }
                    sent
                });
                // One end too many now and then.
                self.cluster.finished(id(host), sent.unwrap_or(now), now);
                self.forget_departed();
                self.level_by_in_flight(host);
            }
            Event::Observed(host, ago, in_progress, queued) => {
                let load = load(now - ago, in_progress, queued);
                self.cluster.observed(id(host), load.clone(), now);
                if self.has(host) && self.observe(host, load) {
                    self.level_again(host);
                }
            }
            Event::Credited(host, credits) => {
                self.cluster.credited(id(host), credits, now);
                if self.has(host) {
                    self.known.entry(host).or_default().credits = Some((credits, now));
                    self.level_again(host);
                }
            }
            Event::Failed(host) => {
                // More would be held against it for longer: failing.rs has tests of that.
                let failures = self.failures.entry(host).or_default();
                if *failures == 4 {
                    return;
                }
                *failures += 1;
                self.cluster.failed(id(host), &Keys::default(), now, now);
                if self.has(host) {
                    self.known.entry(host).or_default().suspect_until = now + SUSPECT_FOR;
                }
            }
            Event::Answered(host) => {
                self.cluster
                    .answered(id(host), &Keys::default(), now, Answer::Well, now);
                if self.has(host) {
                    self.known.entry(host).or_default().suspect_until = Duration::ZERO;
                }
            }
            Event::PeersInFlight(peers) => {
                let listed = peers.iter().map(|(host, count)| (id(*host), *count));
                self.cluster.set_peers_in_flight(listed, now);
                for host in self.numbers() {
                    let count = peers.get(&host).copied().unwrap_or(0);
                    self.known.entry(host).or_default().peers_in_flight = count;
                    self.level_by_in_flight(host);
                }
            }
        }
    }

    fn receive(&mut self, at: Duration, mut policy: Policy, rows: Vec<Row>) {
        // A longer life does not bring back what is forgotten, so histories keep to one.
        let assumed_cached = *self.assumed_cached.get_or_insert(policy.assumed_cached);
        policy.assumed_cached = assumed_cached;
        let row = |row: Row| {
            let observed = row
                .load
                .map(|(age, in_progress, queued)| load(at - age, in_progress, queued));
            (
                row.number,
                Host {
                    state: row.state,
                    level: row.level,
                    load: observed,
                    speed_permille: row.speed_permille,
                    preempt_at: row.stays.map(|stays| at + stays),
                    ..host(row.number)
                },
            )
        };
        let hosts: BTreeMap<_, _> = rows.into_iter().map(row).collect();
        self.cluster.set_table(
            table(policy.clone(), hosts.values().cloned().collect()),
            at,
            self.now,
        );
        self.table = Some(Received {
            policy,
            at,
            hosts: hosts.clone(),
        });
        self.forget_departed();
        self.levels.clear();
        self.panics = self.is_panic();
        for (number, host) in hosts {
            if let Some(load) = host.load {
                self.observe(number, load);
            }
            self.level_again(number);
        }
    }

    fn is_panic(&self) -> bool {
        let Some(table) = &self.table else {
            return false;
        };
        let up = || {
            let hosts = table.hosts.iter();
            hosts.filter(|(_, host)| host.state == HostState::Up)
        };
        let left = up().filter(|(number, _)| !self.is_suspect(**number));
        let share = 100.0 * left.count() as f64 / table.hosts.len() as f64;
        up().count() == 0 || share < f64::from(table.policy.panic_threshold)
    }

    /// A host that is not in the table is remembered for as long as it has requests of ours.
    fn forget_departed(&mut self) {
        let present: BTreeSet<_> = self.numbers().into_iter().collect();
        self.known
            .retain(|host, known| present.contains(host) || known.in_flight > 0);
    }

    fn observe(&mut self, host: usize, load: Load) -> bool {
        let known = self.known.entry(host).or_default();
        let newer = known
            .load
            .as_ref()
            .is_none_or(|old| old.observed < load.observed);
        if newer {
            known.load = Some(load);
        }
        newer
    }

    /// What is sent and ends moves levels only where hosts give credits or have slots.
    fn level_by_in_flight(&mut self, number: usize) {
        let table = self.table.as_ref();
        let overload = table.map(|table| table.policy.overload);
        let counts = matches!(overload, Some(Overload::Breakwater | Overload::Slots));
        if counts && self.has(number) {
            self.level_again(number);
        }
    }

    /// By what is in flight here and the newest credits; nobody has told how many cores there are.
    fn is_spent(&self, number: usize) -> bool {
        let (Some(table), Some(known)) = (&self.table, self.known.get(&number)) else {
            return false;
        };
        let fresh = |at: Duration| self.now - at <= table.policy.stale_after;
        let spent = |(credits, at): (u32, Duration)| fresh(at) && known.in_flight >= credits.max(1);
        let is_idle = self.fresh_load(number).is_some_and(|load| load.queued == 0);
        known.credits.is_some_and(spent) && !is_idle
    }

    /// Levels change when a table or a load comes, not as time passes.
    fn level_again(&mut self, number: usize) {
        let table = self.table.as_ref().unwrap();
        let host = &table.hosts[&number];
        match host.state {
            HostState::Up => {}
            HostState::Draining if self.panics => {}
            _ => return,
        }
        let level = match table.policy.overload {
            Overload::None => Level::ALL,
            Overload::Dagor => host.level,
            Overload::Breakwater if self.is_spent(number) => Level::NONE,
            Overload::Breakwater => Level::ALL,
            // Whether a core is idle is told in slots.rs.
            Overload::Slots => {
                let index = self.cluster.table().unwrap().index_of(id(number));
                self.cluster.level(index.unwrap()).unwrap()
            }
            Overload::Breaker { queued_jobs } => match self.fresh_load(number) {
                Some(load) if load.queued > queued_jobs => Level::NONE,
                _ => Level::ALL,
            },
            // The loads here tell no wait.
            Overload::DynamicBreaker(params) => match self.fresh_load(number) {
                Some(load) if load.queued > params.queued_jobs => Level::NONE,
                _ => Level::ALL,
            },
        };
        self.levels.insert(number, level);
    }

    fn fresh_load(&self, host: usize) -> Option<&Load> {
        let stale_after = self.table.as_ref()?.policy.stale_after;
        let load = self.known.get(&host)?.load.as_ref()?;
        (self.now.saturating_sub(load.observed) <= stale_after).then_some(load)
    }

    fn estimates(&self) -> bool {
        let table = self.table.as_ref();
        table.is_some_and(|table| table.policy.estimates())
    }

    fn has(&self, host: usize) -> bool {
        self.table
            .as_ref()
            .is_some_and(|table| table.hosts.contains_key(&host))
    }

    /// The hosts in the table.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        let hosts = self.table.iter().flat_map(|table| table.hosts.keys());
        hosts.copied().collect()
    }

    pub(crate) fn is_stale(&self) -> bool {
        let table = self.table.as_ref();
        table.is_none_or(|table| self.now - table.at > table.policy.stale_after)
    }

    /// The level in force of a host that is chosen from.
    pub(crate) fn level(&self, host: usize) -> Option<Level> {
        self.levels.get(&host).copied()
    }

    pub(crate) fn chosen_from(&self) -> usize {
        self.levels.len()
    }

    pub(crate) fn eligible(&self, rank: Rank) -> Vec<usize> {
        let levels = self.levels.iter();
        let admitting = levels.filter(|(_, level)| self.is_stale() || level.admits(rank));
        admitting.map(|(host, _)| *host).collect()
    }

    pub(crate) fn is_suspect(&self, host: usize) -> bool {
        self.known
            .get(&host)
            .is_some_and(|known| known.suspect_until > self.now)
    }

    pub(crate) fn in_flight(&self, host: usize) -> u32 {
        self.known.get(&host).map_or(0, |known| known.in_flight)
    }

    /// The last figure the host gave and what was sent since, or what is in flight where that is more.
    pub(crate) fn in_progress(&self, host: usize) -> u32 {
        let Some(known) = self.known.get(&host) else {
            return 0;
        };
        let in_flight = known.in_flight + known.peers_in_flight;
        let Some(load) = self.fresh_load(host) else {
            return in_flight;
        };
        let since = known
            .sent
            .iter()
            .filter(|sent| sent.at > load.observed)
            .count();
        in_flight.max(load.in_progress + since as u32)
    }

    /// 0: the host said that it has the key; 1: it is assumed to have it; 2: it is not.
    pub(crate) fn status(&self, host: usize, name: u64) -> u8 {
        match self.cached.get(&name).and_then(|held| held.get(&host)) {
            Some(false) => 0,
            Some(true) => 1,
            None if self.was_assigned(host, name) => 1,
            None => 2,
        }
    }

    /// How many of the keys the host has, from the first on, and whether any of them is only assumed.
    pub(crate) fn prefix(&self, host: usize, names: &[u64]) -> (usize, bool) {
        let statuses = names.iter().map(|name| self.status(host, *name));
        let held: Vec<_> = statuses.take_while(|status| *status < 2).collect();
        (held.len(), held.contains(&1))
    }

    fn was_assigned(&self, host: usize, name: u64) -> bool {
        let (Some(table), Some(assigned)) = (&self.table, self.assigned.get(&name)) else {
            return false;
        };
        let Some(at) = assigned.get(&host) else {
            return false;
        };
        let newer = assigned.values().filter(|other| *other > at).count();
        newer < ASSUMED_HOSTS && self.now - *at <= table.policy.assumed_cached
    }
}
