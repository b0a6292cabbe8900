// SPDX-License-Identifier: Apache-2.0
//! What one stream of reports was told, and what it is told next: the rows that have changed since.
//!
//! ```text
//!  records of all VMs ── ReportStream::next ──> a Report of at most MAX_BYTES ──> weir-control
//!                          ^      └───> what it was told                       │
//!                          └───────────── the next one waits for its answer <──┘
//! ```
//! Counters stay absolute, so that a row that is told twice changes nothing. A new stream was told nothing: it begins
//! with everything, in as many reports as it takes.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;
use weir_tables::v1;

use crate::index;

/// Bytes of a report, more or less a host: a sixteenth of what weir-control takes.
pub const MAX_BYTES: usize = 1 << 20;

/// Tag and length of a message within a message that is no longer than [`MAX_BYTES`].
const FRAME_BYTES: usize = 5;

/// One stream of reports: rows that it has told already.
#[derive(Debug, Default)]
pub struct ReportStream {
    /// By slot and epoch.
    vms: BTreeMap<(u32, u64), BTreeMap<String, Cluster>>,
    /// By cluster and host, when the newest load was observed, on the proxy's clock. A host that serves all VMs has
    /// told all of them; the newest is enough.
    loads: BTreeMap<(String, String), u64>,
    /// The slot whose turn is first: one that has much to tell does not keep the others from it.
    turn: u32,
}

/// What it was told of one VM's cluster.
#[derive(Debug, Default)]
struct Cluster {
    /// When the record was written whose assignments and costs were told.
    published_ns: Option<u64>,
    /// Without its hosts.
    counters: v1::ClusterRecord,
    /// By address.
    hosts: BTreeMap<String, v1::HostRecord>,
}

/// What is to be told now.
#[derive(Debug, Default)]
pub struct Next {
    /// A report.
    pub report: v1::Report,
    /// There was no room for everything: the rest is to follow.
    pub more: bool,
}

impl Next {
    /// Whether it says more than that VMs live.
    pub fn has_news(&self) -> bool {
        let clusters = self.report.records.iter().flat_map(|vm| &vm.clusters);
        let is_news = |told: &v1::ClusterRecord| {
            let v1::ClusterRecord {
                hosts,
                offered,
                shed,
                assignments,
                spent,
                receipts,
                ..
            } = told;
            let is_empty = hosts.is_empty()
                && offered.is_empty()
                && shed.is_empty()
                && assignments.is_empty()
                && spent.is_empty()
                && receipts.is_empty();
            told.whole || !is_empty
        };
        clusters.into_iter().any(is_news)
    }
}

/// Bytes that are left.
struct Room(usize);

impl Room {
    fn take(&mut self, bytes: usize) -> bool {
        let left = self.0.checked_sub(bytes + FRAME_BYTES);
        self.0 = left.unwrap_or(self.0);
        left.is_some()
    }
}

impl ReportStream {
    /// What has changed in the records of the `live` VMs, as far as it fits. Of these only the heads are looked at, in
    /// the order of slots; `record` is asked for the rest, one at a time.
    pub fn next(
        &mut self,
        proxy: &str,
        live: &[v1::VmRecord],
        mut record: impl FnMut(&v1::VmRecord) -> Option<v1::VmRecord>,
    ) -> Next {
        self.forget_all_but(live);
        let head_bytes = |head: &v1::VmRecord| head.encoded_len() + FRAME_BYTES;
        let heads: usize = live.iter().map(head_bytes).sum();
        let mut room = Room(MAX_BYTES.saturating_sub(proxy.len() + heads));
        let mut next = Next::default();
        let (late, early): (Vec<_>, Vec<_>) = live.iter().partition(|head| head.slot < self.turn);
        for head in early.into_iter().chain(late) {
            // A VM that has nothing new lives all the same.
            let mut told = head.clone();
            let is_of = |record: &v1::VmRecord| record.epoch == head.epoch;
            if !next.more
                && let Some(record) = record(head).filter(is_of)
            {
                told = v1::VmRecord {
                    clusters: Vec::new(),
                    ..record
                };
                let clusters = self.vms.entry((head.slot, head.epoch)).or_default();
                next.more = !tell(clusters, &mut self.loads, record, &mut told, &mut room);
                if next.more {
                    self.turn = head.slot + 1;
                }
            }
            next.report.records.push(told);
        }
        next.report.proxy = proxy.into();
        next.report.changes = true;
        next
    }

    /// Forgets VMs that are dead, and the loads of hosts that nobody else counts for.
    fn forget_all_but(&mut self, live: &[v1::VmRecord]) {
        let is_live = |vm| live.iter().any(|head| (head.slot, head.epoch) == vm);
        let before = self.vms.len();
        self.vms.retain(|vm, _| is_live(*vm));
        if self.vms.len() == before {
            return;
        }
        let clusters = self.vms.values().flatten();
        let hosts =
            clusters.flat_map(|(name, told)| told.hosts.keys().map(move |host| (name, host)));
        let counted = index::set(hosts);
        self.loads
            .retain(|(cluster, host), _| counted.contains(&(cluster, host)));
    }
}

/// Adds to `next` what has changed in a record; whether all of it has found room.
fn tell(
    told: &mut BTreeMap<String, Cluster>,
    loads: &mut BTreeMap<(String, String), u64>,
    record: v1::VmRecord,
    next: &mut v1::VmRecord,
    room: &mut Room,
) -> bool {
    let published_ns = record.published_ns;
    let mut gone = index::set(told.keys().cloned());
    for mut cluster in record.clusters {
        gone.remove(&cluster.cluster);
        let hosts = std::mem::take(&mut cluster.hosts);
        let is_new = !told.contains_key(&cluster.cluster);
        let name = cluster.cluster.clone();
        let known = told.entry(name.clone()).or_default();
        let mut news = known.counters_since(&cluster, published_ns, is_new);
        if !room.take(news.encoded_len()) {
            if is_new {
                told.remove(&name);
            }
            return false;
        }
        known.published_ns = Some(published_ns);
        cluster.assignments.clear();
        cluster.spent.clear();
        cluster.receipts.clear();
        known.counters = cluster;
        let fits = known.hosts_since(hosts, published_ns, loads, &mut news, room);
        next.clusters.push(news);
        if !fits {
            return false;
        }
    }
    for name in gone {
        // No VM wants it any longer: nothing of it is under way.
        let Some(known) = told.get_mut(&name) else {
            continue;
        };
        let mut news = v1::ClusterRecord {
            cluster: name.clone(),
            held: known.counters.held,
            ..Default::default()
        };
        let fits = room.take(news.encoded_len())
            && known.hosts_since(Vec::new(), published_ns, loads, &mut news, room);
        next.clusters.push(news);
        if !fits {
            return false;
        }
        told.remove(&name);
    }
    true
}

impl Cluster {
    /// What has changed, but for the hosts.
    fn counters_since(
        &self,
        record: &v1::ClusterRecord,
        published_ns: u64,
        is_new: bool,
    ) -> v1::ClusterRecord {
        // As weir-control tells what it knows already.
        let is_news = |age_ms: u32| {
            let age = u64::from(age_ms) * 1_000_000;
            let at = published_ns.saturating_sub(age);
            self.published_ns.is_none_or(|told| at > told)
        };
        let assignments = record.assignments.iter();
        let spent = record.spent.iter();
        let receipts = record.receipts.iter();
        v1::ClusterRecord {
            cluster: record.cluster.clone(),
            hosts: Vec::new(),
            offered: risen(&record.offered, &self.counters.offered),
            shed: risen(&record.shed, &self.counters.shed),
            held: record.held,
            assignments: assignments
                .filter(|one| is_news(one.age_ms))
                .copied()
                .collect(),
            spent: spent.filter(|one| is_news(one.age_ms)).copied().collect(),
            whole: is_new,
            choices_ignored: record.choices_ignored,
            receipts: receipts
                .filter(|one| is_news(one.age_ms))
                .cloned()
                .collect(),
            steered: record.steered,
            unsteered: record.unsteered,
        }
    }

    /// Adds the hosts that have changed; whether all have found room.
    fn hosts_since(
        &mut self,
        hosts: Vec<v1::HostRecord>,
        published_ns: u64,
        loads: &mut BTreeMap<(String, String), u64>,
        news: &mut v1::ClusterRecord,
        room: &mut Room,
    ) -> bool {
        let there = index::set(hosts.iter().map(|host| host.address.as_str()));
        let left: Vec<String> = self
            .hosts
            .keys()
            .filter(|address| !there.contains(address.as_str()))
            .cloned()
            .collect();
        for mut host in hosts {
            let observed = host.load.as_ref().map(|load| {
                let age = u64::from(load.age_ms) * 1_000_000;
                let place = (news.cluster.clone(), host.address.clone());
                (place, published_ns.saturating_sub(age))
            });
            // Ages are whole milliseconds, so the same load seems to be up to one of them newer.
            let observed = observed.filter(|(place, at)| {
                let told = loads.get(place);
                told.is_none_or(|told| *at > told + MILLISECOND_NS)
            });
            if observed.is_none() {
                host.load = None;
            }
            let Some(changed) = changed(&host, self.hosts.get(&host.address)) else {
                continue;
            };
            if !room.take(changed.encoded_len()) {
                return false;
            }
            loads.extend(observed);
            news.hosts.push(changed);
            host.load = None;
            self.hosts.insert(host.address.clone(), host);
        }
        for address in left {
            if !self.host_is_gone(&address, news, room) {
                return false;
            }
            loads.remove(&(news.cluster.clone(), address));
        }
        true
    }

    /// Tells that nothing is in flight at a host any more that the record does not have; whether that has found room.
    fn host_is_gone(
        &mut self,
        address: &str,
        news: &mut v1::ClusterRecord,
        room: &mut Room,
    ) -> bool {
        if let Some(host) = self.hosts.get(address)
            && host.in_flight > 0
        {
            let ended = v1::HostRecord {
                address: address.into(),
                in_flight: 0,
                load: None,
                admitted: Vec::new(),
                since_ms: 0,
                ..*host
            };
            if !room.take(ended.encoded_len()) {
                return false;
            }
            news.hosts.push(ended);
        }
        self.hosts.remove(address);
        true
    }
}

const MILLISECOND_NS: u64 = Duration::from_millis(1).as_nanos() as u64;

/// A host with the ranks that have risen; none where nothing has changed.
fn changed(host: &v1::HostRecord, told: Option<&v1::HostRecord>) -> Option<v1::HostRecord> {
    let same = told.filter(|told| told.since_ms == host.since_ms);
    let Some(told) = same else {
        return Some(v1::HostRecord {
            whole: true,
            ..host.clone()
        });
    };
    if told == host {
        return None;
    }
    Some(v1::HostRecord {
        address: host.address.clone(),
        load: host.load.clone(),
        admitted: risen(&host.admitted, &told.admitted),
        since_ms: 0,
        ..*host
    })
}

/// The counts that are not what was told; both are in the order of ranks.
fn risen(counts: &[v1::RankCount], told: &[v1::RankCount]) -> Vec<v1::RankCount> {
    let mut told = told.iter().peekable();
    let is_news = |count: &&v1::RankCount| {
        while told.next_if(|told| told.rank < count.rank).is_some() {}
        told.peek() != Some(count)
    };
    counts.iter().filter(is_news).copied().collect()
}

#[cfg(test)]
mod tests;
