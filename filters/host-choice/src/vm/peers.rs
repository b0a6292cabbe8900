// SPDX-License-Identifier: Apache-2.0
//! The other VMs of the proxy, as their records in shared data show them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weir_policy::{Assignment, HostId, KeyHash};
use weir_tables::{decode_load, v1};

use super::Vm;
use super::cluster::ClusterState;
use crate::report::{Next, ReportStream};
use crate::shared;

#[derive(Default)]
pub(super) struct Peer {
    /// What is looked at again of its newest record: its clusters, and which hosts have how much in flight.
    record: v1::VmRecord,
    cas: u32,
    /// Assignments up to this time are known.
    assigned_until: Duration,
}

impl Vm {
    pub(super) fn read_peers(&mut self, slots: &[u64], now: Duration) {
        for (slot, holder) in (0u32..).zip(slots) {
            if Some(slot) == self.slot {
                self.peers.remove(&slot);
                continue;
            }
            let peer = self.peers.entry(slot).or_default();
            let Some((news, cas)) = shared::record(slot, Some(peer.cas)) else {
                peer.record = v1::VmRecord::default();
                continue;
            };
            if let Some(mut record) = news {
                let assigned_until = peer.learn(&record, &mut self.clusters, now);
                strip(&mut record);
                *peer = Peer {
                    record,
                    cas,
                    assigned_until,
                };
            }
            if peer.record.epoch != *holder || shared::expired(&peer.record, now) {
                peer.record = v1::VmRecord::default();
            }
        }
        for (name, state) in &mut self.clusters {
            let records = self.peers.values().flat_map(|peer| &peer.record.clusters);
            let hosts = records
                .filter(|record| record.cluster == *name)
                .flat_map(|record| &record.hosts);
            let in_flight = hosts.map(|host| (HostId::of(&host.address), host.in_flight));
            state.cluster.set_peers_in_flight(in_flight);
        }
    }

    /// What a stream of reports is told next, of all live VMs of the proxy, this one's included.
    pub(crate) fn report(&self, told: &mut ReportStream, proxy: &str, now: Duration) -> Next {
        let live = |peer: &&v1::VmRecord| peer.epoch != 0 && !shared::expired(peer, now);
        let head = |peer: &v1::VmRecord| v1::VmRecord {
            clusters: Vec::new(),
            ..*peer
        };
        let peers = self.peers.values().map(|peer| &peer.record);
        let mut heads: Vec<_> = peers.filter(live).map(head).collect();
        heads.extend(self.slot.map(|slot| self.head(slot, self.published)));
        heads.sort_by_key(|head| head.slot);
        // One at a time: all of them may be large.
        told.next(proxy, &heads, |head| shared::record(head.slot, None)?.0)
    }

    /// Names of the tables that any live VM of the proxy wants.
    pub(crate) fn wanted(&self, now: Duration) -> BTreeSet<String> {
        let live = self
            .peers
            .values()
            .filter(|peer| !shared::expired(&peer.record, now));
        let peers = live
            .flat_map(|peer| &peer.record.clusters)
            .map(|record| record.cluster.clone());
        let own = self.named_clusters().map(|(name, _)| name.clone());
        peers.chain(own).collect()
    }
}

/// Leaves what is looked at again.
fn strip(record: &mut v1::VmRecord) {
    for cluster in &mut record.clusters {
        *cluster = v1::ClusterRecord {
            cluster: std::mem::take(&mut cluster.cluster),
            hosts: std::mem::take(&mut cluster.hosts),
            ..Default::default()
        };
        cluster.hosts.retain(|host| host.in_flight > 0);
        for host in &mut cluster.hosts {
            *host = v1::HostRecord {
                address: std::mem::take(&mut host.address),
                in_flight: host.in_flight,
                ..Default::default()
            };
        }
    }
}

impl Peer {
    /// Takes over what the peer's new record says of hosts and keys; returns the time of its newest
    /// assignment.
    fn learn(
        &self,
        record: &v1::VmRecord,
        clusters: &mut BTreeMap<String, ClusterState>,
        now: Duration,
    ) -> Duration {
        let published = Duration::from_nanos(record.published_ns);
        let mut newest = self.assigned_until;
        for told in &record.clusters {
            let Some(state) = clusters.get_mut(&told.cluster) else {
                continue;
            };
            for host in &told.hosts {
                if let Some(load) = &host.load {
                    let load = decode_load(load, published);
                    state.cluster.observed(HostId::of(&host.address), load, now);
                }
            }
            for assignment in told.assignments.iter().rev() {
                let at = published.saturating_sub(Duration::from_millis(assignment.age_ms.into()));
                if at > self.assigned_until {
                    let (key, host) = (KeyHash(assignment.key), HostId(assignment.host_id));
                    state.cluster.assigned_by_peer(Assignment { key, host, at });
                    newest = newest.max(at);
                }
            }
        }
        newest
    }
}
