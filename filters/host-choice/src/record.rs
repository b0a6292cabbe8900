// SPDX-License-Identifier: Apache-2.0
//! What one VM counts of one cluster's requests, and its form in a `weir.v1.VmRecord`.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use prost::Message;
use weir_policy::{Cluster, HostId, KeyHash, Load, Rank};
use weir_tables::{encode_load, v1};

use crate::disposition::SHED;
use crate::orca::Spent;
use crate::rank_counts::RankCounts;
use crate::watch::{End, Watch};

/// Hosts that are counted for; of more at a time nobody is counted for.
const MAX_HOSTS: usize = 50_000;
/// See `ClusterRecord.assignments`.
pub(crate) const MAX_ASSIGNMENTS: usize = 1024;
/// See `ClusterRecord.spent`.
const MAX_SPENT: usize = 1024;
/// As long is told what a request cost: a report that is lost is made up for by those after it.
const SPENT_LIFETIME: Duration = Duration::from_secs(10);

/// See `ClusterRecord.receipts`.
const MAX_RECEIPTS: usize = 16;
/// As long is a receipt told, for the same reason.
const RECEIPT_LIFETIME: Duration = Duration::from_secs(5);

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The host answered with this status.
    Status(u32),
    /// Nothing came from the host.
    NoAnswer,
}

/// Counters of one cluster since the VM started.
#[derive(Clone, Debug, Default)]
pub struct Counters {
    hosts: BTreeMap<HostId, HostCounters>,
    offered: RankCounts,
    shed: RankCounts,
    /// What the newest answers cost, oldest first, each with its time.
    spent: VecDeque<(Duration, HostId, KeyHash, Spent)>,
    held: u64,
    /// Of the newest requests that leave one, encoded, oldest first, each with its time.
    receipts: VecDeque<(Duration, Vec<u8>)>,
    /// What ended while some requests are steered and others are not.
    steered: v1::Share,
    unsteered: v1::Share,
    /// See `HostRecord.since_ms`. Beside the counters, so that a request does not pass over it.
    since_ms: BTreeMap<HostId, u64>,
}

#[derive(Clone, Debug, Default)]
struct HostCounters {
    address: String,
    assigned: u64,
    ok: u64,
    client_error: u64,
    server_error: u64,
    no_answer: u64,
    unconnected: u64,
    reading_us: u64,
    /// The newest that an answer carried. What tables and other VMs say is not passed on: it would come
    /// back to them, looking newer each time.
    load: Option<Load>,
    admitted: BTreeMap<Rank, u64>,
}

impl Counters {
    /// A request asked for a host.
    pub fn offered(&mut self, rank: Rank) {
        self.offered.count(rank);
    }

    /// Requests so far.
    pub fn requests(&self) -> u64 {
        self.offered.sum()
    }

    /// It was answered 429.
    pub fn shed(&mut self, rank: Rank) {
        self.shed.count(rank);
    }

    /// It waits for a host.
    pub fn held(&mut self) {
        self.held += 1;
    }

    /// It was sent to a host. The ranks by host serve DAGOR alone, and only then are told.
    pub fn assigned(&mut self, host: HostId, address: &str, rank: Option<Rank>) {
        if self.hosts.len() >= MAX_HOSTS && !self.hosts.contains_key(&host) {
            return;
        }
        let counters = self.hosts.entry(host).or_default();
        if counters.address.is_empty() {
            address.clone_into(&mut counters.address);
        }
        counters.assigned += 1;
        if let Some(rank) = rank {
            *counters.admitted.entry(rank).or_default() += 1;
        }
    }

    /// It is expected to read so long for a prompt that was sent to it.
    pub fn reads(&mut self, host: HostId, reading: Duration) {
        if let Some(counters) = self.hosts.get_mut(&host) {
            let micros = u64::try_from(reading.as_micros()).unwrap_or(u64::MAX);
            counters.reading_us = counters.reading_us.saturating_add(micros);
        }
    }

    /// An answer of the host carried its load.
    pub fn observed(&mut self, host: HostId, load: Load) {
        if let Some(counters) = self.hosts.get_mut(&host) {
            counters.load = Some(load);
        }
    }

    /// A request for the key has cost the host this.
    pub fn spent(&mut self, host: HostId, key: KeyHash, spent: Spent, now: Duration) {
        if self.spent.len() >= MAX_SPENT {
            self.spent.pop_front();
        }
        self.spent.push_back((now, host, key, spent));
    }

    /// A request that was sent to the host has ended.
    pub fn ended(&mut self, host: HostId, ending: Ending) {
        if let Some(counters) = self.hosts.get_mut(&host) {
            let counter = match ending {
                Ending::Status(..400) => &mut counters.ok,
                Ending::Status(400..500) => &mut counters.client_error,
                Ending::Status(_) => &mut counters.server_error,
                Ending::NoAnswer => &mut counters.no_answer,
            };
            *counter += 1;
        }
    }

    /// A watched request has ended.
    pub(crate) fn watched(&mut self, watch: Watch, end: End, now: Duration) {
        let lasted = now.saturating_sub(watch.since);
        let lasted_us = u64::try_from(lasted.as_micros()).unwrap_or(u64::MAX);
        if watch.in_share {
            let share = match watch.is_steered {
                true => &mut self.steered,
                false => &mut self.unsteered,
            };
            share.ended += 1;
            match end.ending {
                _ if watch.is_shed => share.shed += 1,
                Ending::Status(..500) => {
                    share.duration_us = share.duration_us.saturating_add(lasted_us);
                }
                Ending::Status(_) | Ending::NoAnswer => share.failed += 1,
            }
        }
        if let Some(receipt) = watch.receipt {
            let status = match end.ending {
                _ if watch.is_shed => SHED,
                Ending::Status(status) => status,
                Ending::NoAnswer => 0,
            };
            let receipt = v1::Receipt {
                steered: watch.is_steered,
                host: end.address.unwrap_or_default(),
                status,
                duration_us: lasted_us,
                ..receipt
            };
            if self.receipts.len() >= MAX_RECEIPTS {
                self.receipts.pop_front();
            }
            self.receipts.push_back((now, receipt.encode_to_vec()));
        }
    }

    /// The host did not take a request.
    pub fn failed(&mut self, host: HostId) {
        if let Some(counters) = self.hosts.get_mut(&host) {
            counters.unconnected += 1;
        }
    }

    /// The message, with what the cluster knows of its hosts at `now`, and the keys that were sent to them since that
    /// other time. Hosts that have left the table are forgotten when nothing of theirs is in flight.
    pub fn record(
        &mut self,
        name: &str,
        cluster: &Cluster,
        (since, now): (Duration, Duration),
    ) -> v1::ClusterRecord {
        if let Some(table) = cluster.table() {
            self.hosts
                .retain(|id, _| table.index_of(*id).is_some() || cluster.in_flight(*id) > 0);
        }
        let now_ms = u64::try_from(now.as_nanos().div_ceil(1_000_000)).unwrap_or(u64::MAX);
        self.since_ms.retain(|id, _| self.hosts.contains_key(id));
        for id in self.hosts.keys() {
            self.since_ms.entry(*id).or_insert(now_ms);
        }
        let rank = |(rank, count): (Rank, u64)| v1::RankCount {
            rank: rank.number().into(),
            count,
        };
        let hosts = self.hosts.iter().map(|(id, counters)| v1::HostRecord {
            address: counters.address.clone(),
            in_flight: cluster.in_flight(*id),
            assigned: counters.assigned,
            ok: counters.ok,
            client_error: counters.client_error,
            server_error: counters.server_error,
            no_answer: counters.no_answer,
            load: counters.load.as_ref().map(|load| encode_load(load, now)),
            admitted: (counters.admitted.iter())
                .map(|(of, count)| rank((*of, *count)))
                .collect(),
            unconnected: counters.unconnected,
            reading_us: counters.reading_us,
            admission_level: cluster.level_told(*id).map(|level| level.ranks().into()),
            since_ms: self.since_ms.get(id).copied().unwrap_or(now_ms),
            whole: false,
        });
        v1::ClusterRecord {
            cluster: name.into(),
            hosts: hosts.collect(),
            offered: self.offered.iter().map(rank).collect(),
            shed: self.shed.iter().map(rank).collect(),
            assignments: assignments(cluster, since, now),
            spent: self.spent_lately(now),
            held: self.held,
            choices_ignored: !cluster.is_heeded(),
            whole: false,
            receipts: self.receipts_lately(now),
            steered: told(self.steered),
            unsteered: told(self.unsteered),
        }
    }

    fn receipts_lately(&mut self, now: Duration) -> Vec<v1::Stub> {
        let is_late = |(at, _): &(Duration, Vec<u8>)| now.saturating_sub(*at) > RECEIPT_LIFETIME;
        while self.receipts.front().is_some_and(is_late) {
            self.receipts.pop_front();
        }
        let stub = |(at, receipt): &(Duration, Vec<u8>)| v1::Stub {
            age_ms: now.saturating_sub(*at).as_millis() as u32,
            receipt: receipt.clone(),
        };
        self.receipts.iter().map(stub).collect()
    }

    fn spent_lately(&self, now: Duration) -> Vec<v1::Spent> {
        let micros = |time: Duration| u32::try_from(time.as_micros()).unwrap_or(u32::MAX);
        self.spent
            .iter()
            .rev()
            .take_while(|(at, ..)| now.saturating_sub(*at) <= SPENT_LIFETIME)
            .map(|(at, host, key, spent)| v1::Spent {
                key: key.0,
                host_id: host.0,
                age_ms: now.saturating_sub(*at).as_millis() as u32,
                fetch_us: spent.fetch.map(micros),
                run_us: micros(spent.run),
            })
            .collect()
    }
}

/// Nothing where it says nothing.
fn told(share: v1::Share) -> Option<v1::Share> {
    (share.ended > 0).then_some(share)
}

fn assignments(cluster: &Cluster, since: Duration, now: Duration) -> Vec<v1::Assignment> {
    let Some(table) = cluster.table() else {
        return Vec::new();
    };
    let lifetime = table.policy().assumed_cached;
    cluster
        .recent_assignments()
        .take_while(|assignment| {
            assignment.at >= since && now.saturating_sub(assignment.at) <= lifetime
        })
        .take(MAX_ASSIGNMENTS)
        .map(|assignment| v1::Assignment {
            key: assignment.key.0,
            host_id: assignment.host.0,
            age_ms: now.saturating_sub(assignment.at).as_millis() as u32,
        })
        .collect()
}
