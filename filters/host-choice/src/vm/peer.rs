// SPDX-License-Identifier: Apache-2.0
//! Another VM of the proxy, as its newest record shows it.

use std::time::Duration;

use weir_policy::{Assignment, HostId, KeyHash};
use weir_tables::decode_load;

use super::clusters::Clusters;
use crate::stored::{PeerCluster, PeerRecord};

#[derive(Default)]
pub(super) struct Peer {
    /// Its newest, [stripped](PeerRecord::strip).
    pub(super) record: PeerRecord,
    pub(super) cas: u32,
    /// Assignments up to this time are known.
    pub(super) assigned_until: Duration,
}

impl Peer {
    /// Takes over what the peer's new record says of hosts and keys; returns the time of its newest
    /// assignment.
    pub(super) fn learn(
        &self,
        record: &PeerRecord,
        clusters: &mut Clusters,
        now: Duration,
    ) -> Duration {
        let published = Duration::from_nanos(record.published_ns);
        let earlier = Duration::from_nanos(record.earlier_ns);
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
        }
        let before = self.assigned(&record.earlier, earlier, clusters);
        before.max(self.assigned(&record.clusters, published, clusters))
    }

    /// Takes over the assignments of a record of that time; returns the time of the newest that is known now.
    fn assigned(
        &self,
        told: &[PeerCluster],
        published: Duration,
        clusters: &mut Clusters,
    ) -> Duration {
        let mut newest = self.assigned_until;
        for told in told {
            let Some(state) = clusters.get_mut(&told.cluster) else {
                continue;
            };
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
