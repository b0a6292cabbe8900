// SPDX-License-Identifier: Apache-2.0
//! Another VM of the proxy, as its newest record shows it.

use std::time::Duration;

use weir_policy::{Assignment, HostId, KeyHash};
use weir_tables::{decode_load, v1};

use super::clusters::Clusters;

#[derive(Default)]
pub(super) struct Peer {
    /// What is looked at again of its newest record: its clusters, and which hosts have how much in flight.
    pub(super) record: v1::VmRecord,
    pub(super) cas: u32,
    /// Assignments up to this time are known.
    pub(super) assigned_until: Duration,
}

/// Leaves what is looked at again.
pub(super) fn strip(record: &mut v1::VmRecord) {
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
    pub(super) fn learn(
        &self,
        record: &v1::VmRecord,
        clusters: &mut Clusters,
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
