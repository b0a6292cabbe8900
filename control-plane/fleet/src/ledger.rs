// SPDX-License-Identifier: Apache-2.0
//! From absolute counters to what is new.

mod allowance;
mod counters;
mod refused;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use prost::Message;
use weir_policy::{HostId, KeyHash, Level, Rank};
use weir_tables::v1;

use crate::authorization::cap;
use crate::costs::Spent;
use crate::decoded;
use crate::receipts::{LARGEST, LARGEST_DECODED, Told};
use crate::requests::Change;
use crate::rollout::Shares;
use crate::settings::ReportLimits;
use allowance::Allowance;
use counters::{CLUSTER_ROWS, Counters, Room, Telling, VM_ROWS};
pub use refused::{Refused, Tally};

/// A VM is in its proxy's report each second; of one that is not for so long nothing is under way.
const ALIVE: Duration = Duration::from_secs(5);
/// As many are in `ClusterRecord.receipts` at most.
const MOST_RECEIPTS: usize = 16;
/// As many are in `ClusterRecord.assignments` and `.spent` at most.
const MOST_LISTED: usize = 1024;
/// Of what a proxy reports and is not counted, the log says so as often.
const WARN_EVERY: Duration = Duration::from_secs(60);
/// As long a host that has left may be reported: twice as long as Envoy lets a request take where nobody says.
const LEAVING: Duration = Duration::from_secs(600);
/// One proxy has at most this part of `reports.max_rows`.
const SHARE_OF_ONE: usize = 5;

/// The clusters and hosts that there are.
pub trait Names {
    /// Whether there is such a cluster.
    fn has_cluster(&self, name: &str) -> bool;
    /// Whether any host of it was found.
    fn has_hosts(&self, cluster: &str) -> bool;
    /// Whether the cluster's table has a host of this address.
    fn has_host(&self, cluster: &str, address: &str) -> bool;
}

/// The newest counters of every VM of every proxy. What is kept is bounded by what there is (hosts, ranks), by
/// `reports.max_vms` and `max_proxies`, and by `max_rows`.
#[derive(Debug, Default)]
pub struct Ledger {
    proxies: BTreeMap<String, Proxy>,
    rows: usize,
    left: Left,
}

/// Hosts that have left their cluster's table, and when: they are reported until the last request there has ended.
type Left = BTreeMap<(String, HostId), Duration>;

#[derive(Debug, Default)]
struct Proxy {
    /// By slot and epoch.
    vms: BTreeMap<(u32, u64), Vm>,
    rows: usize,
    refused: Tally,
    /// Refused since the log last said so, and when that was.
    unsaid: Tally,
    warned: Option<Duration>,
}

#[derive(Debug)]
struct Vm {
    heard: Duration,
    /// It was silent for [`ALIVE`], so that nothing is under way.
    is_buried: bool,
    /// On the proxy's clock: when the last record that was taken in was written.
    published_ns: Option<u64>,
    allowance: Allowance,
    /// Requests on their way to hosts, by the newest record.
    in_flight: u64,
    clusters: BTreeMap<String, Counters>,
}

/// Names of [`News::outcomes`].
pub const OUTCOMES: [&str; 4] = ["ok", "client_error", "server_error", "no_answer"];

/// What a report adds for one cluster.
#[derive(Debug, Default, PartialEq)]
pub struct News {
    /// Requests that asked for a host.
    pub offered: BTreeMap<Rank, u64>,
    /// Requests that got one, by address.
    pub admitted: BTreeMap<String, BTreeMap<Rank, u64>>,
    /// Requests that a host did not take, by address.
    pub unconnected: BTreeMap<String, u64>,
    /// Microseconds that hosts are expected to read for what was sent to them, by address.
    pub reading_us: BTreeMap<String, u64>,
    /// Requests answered 429.
    pub shed: BTreeMap<Rank, u64>,
    /// Requests that waited for a host.
    pub held: u64,
    /// Answers, as [`OUTCOMES`] names them.
    pub outcomes: [u64; 4],
    /// Admission levels in force at the proxy, by address.
    pub levels: BTreeMap<String, Level>,
    /// How requests under way have changed at the hosts that it tells of, also where they are as many as before.
    pub under_way: Vec<(HostId, Change)>,
    /// What answers of hosts carried, and when they carried it.
    pub loads: Vec<(String, v1::Load, Duration)>,
    /// Keys sent to hosts, and when.
    pub assignments: Vec<(KeyHash, HostId, Duration)>,
    /// What requests cost.
    pub spent: Vec<Spent>,
    /// Of requests that leave one.
    pub receipts: Vec<Told>,
    /// How requests ended that were steered, and that were not, while there are both.
    pub shares: Shares,
}

/// What came of a report.
#[derive(Debug, Default, PartialEq)]
pub struct Folded {
    /// What is new, by cluster.
    pub news: BTreeMap<String, News>,
    /// What of it was not counted.
    pub refused: Tally,
    /// What of this proxy's the log is to say now that it was not counted.
    pub warning: Option<Tally>,
}

/// The proxy's clock now, as near as it tells: that of the record written last.
fn clock(report: &v1::Report) -> u64 {
    let records = report.records.iter();
    let written = records.map(|record| record.published_ns);
    written.max().unwrap_or(0)
}

impl Ledger {
    /// Takes in a report of clusters and hosts that there are.
    ///
    /// A record of a new epoch counts from zero: its VM has just started. The first report of a proxy that
    /// this process does not know is where counting begins: its VMs may be days old, and that is no burst.
    pub fn fold(
        &mut self,
        report: &v1::Report,
        names: &impl Names,
        now: Duration,
        limits: &ReportLimits,
    ) -> Folded {
        let mut folded = Folded::default();
        let proxy_known = self.proxies.contains_key(&report.proxy);
        if !proxy_known && self.proxies.len() >= limits.max_proxies {
            folded.refused.add(Refused::TooManyProxies, 1);
            return folded;
        }
        let clock = clock(report);
        let proxy = self.proxies.entry(report.proxy.clone()).or_default();
        let left_to_it = (limits.max_rows / SHARE_OF_ONE).saturating_sub(proxy.rows);
        let left = limits.max_rows.saturating_sub(self.rows).min(left_to_it);
        let mut room = Room(left);
        let mut told = BTreeSet::new();
        for (number, record) in report.records.iter().enumerate() {
            let key = (record.slot, record.epoch);
            // Each takes a look at all of its VM's hosts, and a record may be of two bytes.
            if number >= limits.max_vms || !told.insert(key) {
                folded.refused.add(Refused::TooManyVms, 1);
                continue;
            }
            if record.deadline_ns < clock {
                folded.refused.add(Refused::Expired, 1);
                continue;
            }
            if !proxy.vms.contains_key(&key) && proxy.vms.len() >= limits.max_vms {
                folded.refused.add(Refused::TooManyVms, 1);
                continue;
            }
            if !proxy.vms.contains_key(&key) && !room.take(VM_ROWS) {
                folded.refused.add(Refused::TooManyRows, 1);
                continue;
            }
            let vm = proxy.vms.entry(key).or_insert_with(|| Vm::new(now));
            vm.heard = now;
            let telling = Telling {
                proxy_known,
                changes: report.changes,
                heard_ns: vm.published_ns,
                is_newest: vm
                    .published_ns
                    .is_none_or(|heard| record.published_ns >= heard),
            };
            let written = now.saturating_sub(Duration::from_nanos(clock - record.published_ns));
            let there = There {
                names,
                left: &self.left,
            };
            vm.fold(
                record,
                telling,
                there,
                (now, written),
                &mut room,
                &mut folded,
            );
        }
        (self.rows, proxy.rows) = (self.rows + left - room.0, proxy.rows + left - room.0);
        folded.warning = proxy.refuse(&folded.refused, now);
        folded
    }

    /// Buries VMs that are silent, before they are forgotten; returns what is not under way any more, by cluster.
    pub fn bury(&mut self, now: Duration, limits: &ReportLimits) -> Vec<(String, HostId, Change)> {
        let alive = ALIVE.min(limits.forget_after);
        let mut all = Vec::new();
        let vms = self.proxies.values_mut();
        let vms = vms.flat_map(|proxy| proxy.vms.values_mut());
        for vm in vms.filter(|vm| !vm.is_buried && now.saturating_sub(vm.heard) > alive) {
            vm.is_buried = true;
            for (name, counters) in &vm.clusters {
                all.extend(ended(counters).map(|(host, change)| (name.clone(), host, change)));
            }
        }
        all
    }

    /// Drops what has not been renewed for a while.
    pub fn forget(&mut self, now: Duration, limits: &ReportLimits) {
        self.left.retain(|_, at| now.saturating_sub(*at) <= LEAVING);
        self.proxies.retain(|_, proxy| {
            let vms = proxy.vms.len();
            proxy
                .vms
                .retain(|_, vm| now.saturating_sub(vm.heard) <= limits.forget_after);
            // To count each row of a thousand proxies before each table took half of a core.
            if proxy.vms.len() < vms {
                self.rows -= proxy.recount();
            }
            !proxy.vms.is_empty()
        });
    }

    /// Drops what is known of clusters and hosts that there are no longer.
    pub fn prune(&mut self, clusters: &[String], hosts: &[(String, HostId)], now: Duration) {
        self.left
            .extend(hosts.iter().map(|host| (host.clone(), now)));
        for proxy in self.proxies.values_mut() {
            for vm in proxy.vms.values_mut() {
                vm.clusters.retain(|name, _| !clusters.contains(name));
                for (cluster, host) in hosts {
                    if let Some(counters) = vm.clusters.get_mut(cluster) {
                        counters.remove(*host);
                    }
                }
                vm.in_flight = vm.clusters.values().map(Counters::in_flight).sum();
            }
            self.rows -= proxy.recount();
        }
    }

    /// How many proxies report.
    pub fn proxies(&self) -> usize {
        self.proxies.len()
    }

    /// Counters that are kept.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// Requests on their way to hosts, by the newest record of every VM that is alive: of one that was killed
    /// nothing is reported any more, and its requests have ended with it.
    pub fn in_flight(&self, now: Duration) -> u64 {
        let vms = self.proxies.values().flat_map(|proxy| proxy.vms.values());
        let alive = vms.filter(|vm| now.saturating_sub(vm.heard) <= ALIVE);
        alive.map(|vm| vm.in_flight).sum()
    }

    /// The proxies of whose reports most was refused, at most so many: name, and what.
    pub fn most_refused(&self, most: usize) -> Vec<(&str, &Tally)> {
        let proxies = self.proxies.iter();
        let mut refused: Vec<_> = proxies
            .map(|(name, proxy)| (name.as_str(), &proxy.refused))
            .filter(|(_, refused)| refused.unusual() > 0)
            .collect();
        refused.sort_by_key(|(name, refused)| (std::cmp::Reverse(refused.unusual()), *name));
        refused.truncate(most);
        refused
    }
}

/// What there is, and was.
#[derive(Debug)]
struct There<'a, N> {
    names: &'a N,
    left: &'a Left,
}

impl<N> Clone for There<'_, N> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<N> Copy for There<'_, N> {}

impl<N: Names> There<'_, N> {
    /// Why the host's counters are not taken in, if they are not.
    fn refuses(&self, cluster: &str, address: &str) -> Option<Refused> {
        let left = || {
            self.left
                .contains_key(&(cluster.to_owned(), HostId::of(address)))
        };
        match () {
            () if self.names.has_host(cluster, address) => None,
            () if !self.names.has_hosts(cluster) || left() => Some(Refused::HostAway),
            () => Some(Refused::UnknownHost),
        }
    }
}

impl Proxy {
    /// Notes what was refused; returns what the log is to say.
    fn refuse(&mut self, refused: &Tally, now: Duration) -> Option<Tally> {
        self.refused.add_all(refused);
        self.unsaid.add_all(refused);
        let silent = self.warned.is_some_and(|at| now < at + WARN_EVERY);
        if silent || self.unsaid.unusual() == 0 {
            return None;
        }
        self.warned = Some(now);
        Some(std::mem::take(&mut self.unsaid))
    }

    /// How many rows there are less than before.
    fn recount(&mut self) -> usize {
        let rows = self.vms.values().map(Vm::rows).sum();
        std::mem::replace(&mut self.rows, rows) - rows
    }
}

impl Vm {
    fn new(now: Duration) -> Self {
        Self {
            heard: now,
            is_buried: false,
            published_ns: None,
            allowance: Allowance::new(now),
            in_flight: 0,
            clusters: BTreeMap::new(),
        }
    }

    /// What it takes.
    fn rows(&self) -> usize {
        VM_ROWS + self.clusters.values().map(Counters::rows).sum::<usize>()
    }

    /// Takes in a record that was `written` at a time before `now`.
    fn fold(
        &mut self,
        record: &v1::VmRecord,
        telling: Telling,
        there: There<'_, impl Names>,
        (now, written): (Duration, Duration),
        room: &mut Room,
        folded: &mut Folded,
    ) {
        if std::mem::take(&mut self.is_buried) {
            for (name, counters) in &self.clusters {
                let news = folded.news.entry(name.clone()).or_default();
                news.under_way.extend(counters.all_under_way());
            }
        }
        if telling.is_newest && !telling.changes {
            // Where hosts and clusters are not in it any more nothing is in flight.
            for (name, counters) in &mut self.clusters {
                let news = folded.news.entry(name.clone()).or_default();
                news.under_way.extend(ended(counters));
                counters.no_longer_in_flight();
            }
        }
        let mut told = BTreeMap::<&str, News>::new();
        for cluster in &record.clusters {
            let name = cluster.cluster.as_str();
            if !there.names.has_cluster(name) {
                folded.refused.add(Refused::UnknownCluster, 1);
                continue;
            }
            let is_new = !self.clusters.contains_key(name);
            if is_new && !room.take(CLUSTER_ROWS) {
                folded.refused.add(Refused::TooManyRows, 1);
                continue;
            }
            let counters = self.clusters.entry(name.to_owned()).or_default();
            let news = told.entry(name).or_default();
            let refused = &mut folded.refused;
            counters.fold(cluster, is_new, telling, there, room, news, refused);
            let news = folded.news.entry(name.to_owned()).or_default();
            observe(cluster, there.names, written, news);
            news.under_way.append(&mut counters.moved);
            let listed = |count: usize| count.saturating_sub(MOST_LISTED) as u64;
            refused.add(
                Refused::TooManyAssignments,
                listed(cluster.assignments.len()),
            );
            refused.add(Refused::TooManySpent, listed(cluster.spent.len()));
            // A record may repeat those of the records before it.
            let since = counters.told_ns;
            counters.told_ns = since.max(Some(record.published_ns));
            let new = |age_ms: u32| {
                let age = u64::from(age_ms) * 1_000_000;
                since.is_none_or(|since| record.published_ns.saturating_sub(age) > since)
            };
            let assignments = cluster.assignments.iter().take(MOST_LISTED);
            assign(assignments.filter(|sent| new(sent.age_ms)), written, news);
            let answered = cluster.spent.iter().take(MOST_LISTED);
            let answered = answered.filter(|spent| new(spent.age_ms));
            news.spent.extend(answered.map(spent));
            let receipts = cluster.receipts.iter();
            let receipts = receipts.filter(|stub| new(stub.age_ms));
            folded.refused.add(
                Refused::BadReceipt,
                keep(receipts, written, &mut news.receipts),
            );
        }
        // An older record may come after a newer one.
        self.published_ns = self.published_ns.max(Some(record.published_ns));
        self.in_flight = self.clusters.values().map(Counters::in_flight).sum();
        if !self.allowance.take(requests(told.values()), now) {
            folded.refused.add(Refused::Leap, 1);
            return;
        }
        for (name, told) in told {
            if let Some(news) = folded.news.get_mut(name) {
                news.add_counts(told);
            }
        }
    }
}

/// The least number of requests behind what counters have risen by.
fn requests<'a>(news: impl Iterator<Item = &'a News>) -> u64 {
    let mut sums = [0u64; 6];
    for news in news {
        let admitted = news.admitted.values().flat_map(BTreeMap::values);
        let counted: [&mut dyn Iterator<Item = &u64>; 6] = [
            &mut news.offered.values(),
            &mut admitted.into_iter(),
            &mut news.unconnected.values(),
            &mut news.shed.values(),
            &mut std::iter::once(&news.held),
            &mut news.outcomes.iter(),
        ];
        for (sum, counted) in sums.iter_mut().zip(counted) {
            counted.for_each(|count| raise(sum, *count));
        }
    }
    sums.into_iter().max().unwrap_or(0)
}

impl News {
    /// Counts what is more important than `class` at it.
    pub fn cap(&mut self, class: u8) {
        let counts = [&mut self.offered, &mut self.shed];
        let counts = counts.into_iter().chain(self.admitted.values_mut());
        counts.for_each(|counts| cap(counts, class));
    }

    /// What counters have risen by, once more.
    fn add_counts(&mut self, other: Self) {
        fn add<K: Ord>(sums: &mut BTreeMap<K, u64>, counts: BTreeMap<K, u64>) {
            for (key, count) in counts {
                raise(sums.entry(key).or_default(), count);
            }
        }
        add(&mut self.offered, other.offered);
        add(&mut self.shed, other.shed);
        for (address, counts) in other.admitted {
            add(self.admitted.entry(address).or_default(), counts);
        }
        add(&mut self.unconnected, other.unconnected);
        add(&mut self.reading_us, other.reading_us);
        raise(&mut self.held, other.held);
        self.shares.add(other.shares);
        for (sum, count) in self.outcomes.iter_mut().zip(other.outcomes) {
            raise(sum, count);
        }
    }
}

/// Takes receipts; returns how many of them are none, or too many.
fn keep<'a>(
    stubs: impl Iterator<Item = &'a v1::Stub>,
    written: Duration,
    receipts: &mut Vec<Told>,
) -> u64 {
    let mut refused = 0;
    for (at, stub) in stubs.enumerate() {
        match (at < MOST_RECEIPTS)
            .then(|| receipt(&stub.receipt))
            .flatten()
        {
            Some((receipt, bytes)) => receipts.push(Told {
                ended: written.saturating_sub(Duration::from_millis(stub.age_ms.into())),
                receipt,
                bytes,
            }),
            None => refused += 1,
        }
    }
    refused
}

/// A receipt, and what it takes; none where no filter wrote these bytes.
fn receipt(encoded: &[u8]) -> Option<(v1::Receipt, usize)> {
    if encoded.len() > LARGEST {
        return None;
    }
    let bytes = decoded::bytes(&decoded::RECEIPT, encoded).ok()?;
    if bytes > LARGEST_DECODED {
        return None;
    }
    let receipt = v1::Receipt::decode(encoded).ok()?;
    Some((receipt, size_of::<v1::Receipt>() + bytes))
}

/// Nothing that these counters have in flight is under way any more.
fn ended(counters: &Counters) -> impl Iterator<Item = (HostId, Change)> {
    let all = counters.all_under_way();
    all.map(|(host, change)| {
        let by = -change.by;
        (host, Change { by, ..change })
    })
}

/// A proxy may say anything: sums stay where they cannot rise.
fn raise(sum: &mut u64, rise: u64) {
    *sum = sum.saturating_add(rise);
}

fn observe(record: &v1::ClusterRecord, names: &impl Names, written: Duration, news: &mut News) {
    let at = |age_ms: u32| written.saturating_sub(Duration::from_millis(age_ms.into()));
    // More classes than there are would make a table that every proxy refuses.
    let classes = usize::from(weir_policy::CLASSES);
    let sane = |load: &&v1::Load| load.queued.len() <= classes && load.work_us.len() <= classes;
    let hosts = record.hosts.iter();
    let hosts = hosts.filter(|host| names.has_host(&record.cluster, &host.address));
    let level = |host: &v1::HostRecord| {
        let level = host.admission_level.and_then(|level| level.try_into().ok());
        (
            host.address.clone(),
            level.map_or(Level::ALL, Level::admitting),
        )
    };
    news.levels.extend(hosts.clone().map(level));
    let loads = hosts.filter_map(|host| Some((host, host.load.as_ref().filter(sane)?)));
    news.loads
        .extend(loads.map(|(host, load)| (host.address.clone(), load.clone(), at(load.age_ms))));
}

fn spent(spent: &v1::Spent) -> Spent {
    let micros = |micros: u32| Duration::from_micros(micros.into());
    Spent {
        key: KeyHash(spent.key),
        host: HostId(spent.host_id),
        fetch: spent.fetch_us.map(micros),
        run: micros(spent.run_us),
    }
}

fn assign<'a>(
    assignments: impl Iterator<Item = &'a v1::Assignment>,
    written: Duration,
    news: &mut News,
) {
    let assigned = |assignment: &v1::Assignment| {
        let age = Duration::from_millis(assignment.age_ms.into());
        let (key, host) = (KeyHash(assignment.key), HostId(assignment.host_id));
        (key, host, written.saturating_sub(age))
    };
    news.assignments.extend(assignments.map(assigned));
}

#[cfg(test)]
mod tests;
