// SPDX-License-Identifier: Apache-2.0
//! The other VMs of the proxy, as their records in shared data show them.

use std::collections::BTreeSet;
use std::time::Duration;

use weir_policy::HostId;

use super::Vm;
use super::peer::Peer;
use crate::host::Host;
use crate::index;
use crate::report::{Next, ReportStream};
use crate::shared;
use crate::stored::PeerRecord;

impl<H: Host> Vm<H> {
    pub(super) fn read_peers(&mut self, slots: &[u64], now: Duration) {
        for (slot, holder) in (0u32..).zip(slots) {
            if Some(slot) == self.slot {
                self.peers.remove(&slot);
                continue;
            }
            let peer = self.peers.entry(slot).or_default();
            let Some((news, cas)) = shared::record::<PeerRecord>(&self.host, slot, Some(peer.cas))
            else {
                peer.record = PeerRecord::default();
                continue;
            };
            if let Some(mut record) = news {
                let assigned_until = peer.learn(&record, &mut self.clusters, now);
                record.strip();
                *peer = Peer {
                    record,
                    cas,
                    assigned_until,
                };
            }
            if peer.record.epoch != *holder || shared::expired(peer.record.deadline_ns, now) {
                peer.record = PeerRecord::default();
            }
        }
        for (name, state) in self.clusters.iter_mut() {
            let records = self.peers.values().flat_map(|peer| &peer.record.clusters);
            let hosts = records
                .filter(|record| *record.cluster == **name)
                .flat_map(|record| &record.hosts);
            let in_flight = hosts.map(|host| (HostId::of(&host.address), host.in_flight));
            state.cluster.set_peers_in_flight(in_flight, now);
        }
    }

    /// What a stream of reports is told next, of all live VMs of the proxy, this one's included.
    pub(crate) fn report(&self, told: &mut ReportStream, proxy: &str, now: Duration) -> Next {
        let live = |peer: &&PeerRecord| peer.epoch != 0 && !shared::expired(peer.deadline_ns, now);
        let peers = self.peers.values().map(|peer| &peer.record);
        let mut heads: Vec<_> = peers.filter(live).map(PeerRecord::head).collect();
        heads.extend(self.slot.map(|slot| self.head(slot, self.published)));
        heads.sort_unstable_by_key(|head| head.slot);
        // One at a time: all of them may be large.
        told.next(proxy, &heads, |head| {
            shared::whole_record(&self.host, head.slot)
        })
    }

    /// Names of the tables that any live VM of the proxy wants.
    pub(crate) fn wanted(&self, now: Duration) -> BTreeSet<String> {
        let live = self
            .peers
            .values()
            .filter(|peer| !shared::expired(peer.record.deadline_ns, now));
        let peers = live
            .flat_map(|peer| &peer.record.clusters)
            .map(|record| record.cluster.clone());
        let own = self.named_clusters().map(|(name, _)| name.to_string());
        index::set(peers.chain(own))
    }
}
