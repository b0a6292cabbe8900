// SPDX-License-Identifier: Apache-2.0
//! A VM's record as it is in shared data: a `weir.v1.VmRecord`, and behind its bytes the keys that it told earlier.
//!
//! ```text
//!  every 100 ms:  record without keys ++ Earlier: all recent keys
//!  in between:    record with the keys since ++ the same bytes again
//! ```
//! A thread that falls asleep writes its record each time, so what is long in it is not made anew. The fields of
//! [`Earlier`] are none of the record's message, which passes over them, and so the other way around.

use prost::Message;
use weir_tables::v1;

use crate::record::MAX_ASSIGNMENTS;

/// What was told of keys in an earlier record.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Earlier {
    /// With nothing but their assignments.
    #[prost(message, repeated, tag = "100")]
    clusters: Vec<v1::ClusterRecord>,
    /// As `published_ns` was then.
    #[prost(uint64, tag = "101")]
    at_ns: u64,
}

impl Earlier {
    /// Takes the assignments out of a record.
    pub(crate) fn take(record: &mut v1::VmRecord) -> Self {
        let taken = |cluster: &mut v1::ClusterRecord| v1::ClusterRecord {
            cluster: cluster.cluster.clone(),
            assignments: std::mem::take(&mut cluster.assignments),
            ..Default::default()
        };
        let clusters = record.clusters.iter_mut().map(taken);
        Self {
            clusters: clusters.filter(|it| !it.assignments.is_empty()).collect(),
            at_ns: record.published_ns,
        }
    }

    /// Puts them back, behind those that are newer: of a key and host the newest alone, and no more than a record may have.
    fn join(self, record: &mut v1::VmRecord) {
        let passed_ms = record.published_ns.saturating_sub(self.at_ns) / 1_000_000;
        let passed_ms = u32::try_from(passed_ms).unwrap_or(u32::MAX);
        for earlier in self.clusters {
            let cluster = record.clusters.iter_mut();
            let mut cluster = cluster.filter(|it| it.cluster == earlier.cluster);
            let aged = earlier.assignments.into_iter().map(|one| v1::Assignment {
                age_ms: one.age_ms.saturating_add(passed_ms),
                ..one
            });
            if let Some(cluster) = cluster.next() {
                // Few are newer: they are of a tenth of a second.
                let newer = &cluster.assignments;
                let is_newer = |one: &v1::Assignment| {
                    let mut same = newer.iter().filter(|new| new.key == one.key);
                    same.any(|new| new.host_id == one.host_id)
                };
                let older: Vec<_> = aged.filter(|one| !is_newer(one)).collect();
                cluster.assignments.extend(older);
                cluster.assignments.truncate(MAX_ASSIGNMENTS);
            }
        }
    }
}

/// A whole record, with all keys; none where these bytes are no record.
pub fn decode(value: &[u8]) -> Option<v1::VmRecord> {
    let mut record = v1::VmRecord::decode(value).ok()?;
    Earlier::decode(value).ok()?.join(&mut record);
    Some(record)
}

/// A record and what is behind it, apart.
pub(crate) fn split(value: &[u8]) -> Option<(v1::VmRecord, Earlier)> {
    let record = v1::VmRecord::decode(value).ok()?;
    Some((record, Earlier::decode(value).ok()?))
}

/// The bytes of a record with those of an [`Earlier`].
pub(crate) fn encode(record: &v1::VmRecord, earlier: &[u8]) -> Vec<u8> {
    let mut value = Vec::with_capacity(record.encoded_len() + earlier.len());
    record.encode_raw(&mut value);
    value.extend_from_slice(earlier);
    value
}

/// Whose record it is, and how long it is good.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct Head {
    #[prost(fixed64, tag = "2")]
    pub(crate) epoch: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) deadline_ns: u64,
}

/// Of a record what other VMs of the proxy go by: its counters are passed over.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PeerRecord {
    #[prost(uint32, tag = "1")]
    pub(crate) slot: u32,
    #[prost(fixed64, tag = "2")]
    pub(crate) epoch: u64,
    #[prost(uint64, tag = "3")]
    pub(crate) deadline_ns: u64,
    #[prost(message, repeated, tag = "4")]
    pub(crate) clusters: Vec<PeerCluster>,
    #[prost(uint64, tag = "5")]
    pub(crate) published_ns: u64,
    /// As in [`Earlier`].
    #[prost(message, repeated, tag = "100")]
    pub(crate) earlier: Vec<PeerCluster>,
    #[prost(uint64, tag = "101")]
    pub(crate) earlier_ns: u64,
}

/// Of a cluster's record the same.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PeerCluster {
    #[prost(string, tag = "1")]
    pub(crate) cluster: String,
    #[prost(message, repeated, tag = "2")]
    pub(crate) hosts: Vec<PeerHost>,
    #[prost(message, repeated, tag = "5")]
    pub(crate) assignments: Vec<v1::Assignment>,
}

/// Of a host's the same.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct PeerHost {
    #[prost(string, tag = "1")]
    pub(crate) address: String,
    #[prost(uint32, tag = "2")]
    pub(crate) in_flight: u32,
    #[prost(message, optional, tag = "8")]
    pub(crate) load: Option<v1::Load>,
}

impl PeerRecord {
    /// Leaves what is looked at again: its clusters, and which hosts have how much in flight.
    pub(crate) fn strip(&mut self) {
        self.earlier.clear();
        for cluster in &mut self.clusters {
            cluster.assignments = Vec::new();
            cluster.hosts.retain(|host| host.in_flight > 0);
            cluster.hosts.iter_mut().for_each(|host| host.load = None);
        }
    }

    /// The record without its clusters.
    pub(crate) fn head(&self) -> v1::VmRecord {
        v1::VmRecord {
            slot: self.slot,
            epoch: self.epoch,
            deadline_ns: self.deadline_ns,
            clusters: Vec::new(),
            published_ns: self.published_ns,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn assignment(key: u64, age_ms: u32) -> v1::Assignment {
        v1::Assignment {
            key,
            host_id: 7,
            age_ms,
        }
    }

    /// Published at that millisecond.
    fn record(at_ms: u64, assignments: &[(u64, u32)]) -> v1::VmRecord {
        let of = |(key, age_ms): &(u64, u32)| assignment(*key, *age_ms);
        v1::VmRecord {
            slot: 3,
            epoch: 9,
            deadline_ns: at_ms * 1_000_000 + 5,
            published_ns: at_ms * 1_000_000,
            clusters: vec![v1::ClusterRecord {
                cluster: "rules".into(),
                held: 4,
                hosts: vec![v1::HostRecord {
                    address: "10.0.0.1:80".into(),
                    in_flight: 2,
                    assigned: 11,
                    load: Some(v1::Load::default()),
                    admitted: vec![v1::RankCount { rank: 1, count: 2 }],
                    ..Default::default()
                }],
                assignments: assignments.iter().map(of).collect(),
                ..Default::default()
            }],
        }
    }

    /// A record of 1,000 ms with two keys, and one 30 ms later with a third.
    fn later() -> Vec<u8> {
        let mut first = record(1_000, &[(2, 10), (1, 400)]);
        let earlier = Earlier::take(&mut first).encode_to_vec();
        assert!(first.clusters[0].assignments.is_empty());
        assert_eq!(
            decode(&encode(&first, &earlier)).unwrap(),
            record(1_000, &[(2, 10), (1, 400)])
        );
        encode(&record(1_030, &[(3, 5)]), &earlier)
    }

    #[test]
    fn keys_of_before_are_told_again_as_old_as_they_are_by_now() {
        let whole = decode(&later()).unwrap();
        assert_eq!(whole, record(1_030, &[(3, 5), (2, 40), (1, 430)]));
        let (mut apart, earlier) = split(&later()).unwrap();
        assert_eq!(apart, record(1_030, &[(3, 5)]));
        apart.published_ns += 1_000_000_000;
        let renewed = decode(&encode(&apart, &earlier.encode_to_vec())).unwrap();
        let ages = renewed.clusters[0].assignments.iter().map(|one| one.age_ms);
        assert_eq!(ages.collect::<Vec<_>>(), [5, 1_040, 1_430]);
    }

    #[test]
    fn of_a_key_the_newest_is_told_and_no_more_keys_than_a_record_may_have() {
        let many: Vec<_> = (0..1024).map(|key| (key, 10)).collect();
        let mut first = record(1_000, &many);
        let earlier = Earlier::take(&mut first).encode_to_vec();
        let later = encode(&record(1_030, &[(5_000, 1), (7, 2)]), &earlier);
        let told = decode(&later).unwrap().clusters.remove(0).assignments;
        assert_eq!(told.len(), 1024);
        assert_eq!(
            told[..3],
            [assignment(5_000, 1), assignment(7, 2), assignment(0, 40)]
        );
        assert_eq!(told.iter().filter(|one| one.key == 7).count(), 1);
    }

    #[test]
    fn of_a_peer_what_is_gone_by_is_read_and_no_counters() {
        let mut peer = PeerRecord::decode(&*later()).unwrap();
        assert_eq!(
            peer.head(),
            v1::VmRecord {
                clusters: vec![],
                ..record(1_030, &[])
            }
        );
        assert_eq!(
            (peer.earlier_ns, peer.earlier[0].assignments.len()),
            (1_000_000_000, 2)
        );
        assert_eq!(peer.clusters[0].assignments, [assignment(3, 5)]);
        let host = PeerHost {
            address: "10.0.0.1:80".into(),
            in_flight: 2,
            load: Some(v1::Load::default()),
        };
        assert_eq!(peer.clusters[0].hosts, std::slice::from_ref(&host));
        peer.strip();
        assert_eq!(peer.clusters[0].hosts, [PeerHost { load: None, ..host }]);
        assert!(peer.earlier.is_empty() && peer.clusters[0].assignments.is_empty());
        let head = Head::decode(&*later()).unwrap();
        assert_eq!((head.epoch, head.deadline_ns), (9, 1_030_000_005));
    }
}
