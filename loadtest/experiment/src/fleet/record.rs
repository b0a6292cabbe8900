// SPDX-License-Identifier: Apache-2.0
//! What an EMULATED sidecar reports: absolute counters of its two workers, as the filter does.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use rand::RngExt;
use weir_policy::HostId;
use weir_tables::v1;

/// How long a key counts as cached where it was sent: weir-control's default.
const ASSUMED: Duration = Duration::from_secs(10);
/// A VM says that it lives, and for how long.
const LEASE: Duration = Duration::from_secs(5);
/// Different keys of the fleet's requests.
const KEYS: u64 = 10_000;

pub(crate) struct Reporter {
    proxy: String,
    workers: Vec<Worker>,
}

struct Worker {
    epoch: u64,
    /// Every host was sent something before: a VM counts from its start.
    hosts: Vec<v1::HostRecord>,
    ids: Vec<u64>,
    offered: u64,
    sent: VecDeque<(Instant, u64, u64)>,
}

impl Reporter {
    pub(crate) fn new(proxy: String, hosts: &[String]) -> Self {
        let host = |address: &String| v1::HostRecord {
            address: address.clone(),
            assigned: 1,
            ok: 1,
            ..Default::default()
        };
        let worker = || Worker {
            epoch: rand::random(),
            hosts: hosts.iter().map(host).collect(),
            ids: hosts.iter().map(|address| HostId::of(address).0).collect(),
            offered: hosts.len() as u64,
            sent: VecDeque::new(),
        };
        Self {
            proxy,
            workers: vec![worker(), worker()],
        }
    }

    /// What is to be reported after so many more requests of each worker.
    pub(crate) fn report(&mut self, requests: usize, since: Duration) -> v1::Report {
        let now = Instant::now();
        let workers = self.workers.iter_mut().zip(0..);
        let record = |(worker, slot): (&mut Worker, u32)| v1::VmRecord {
            slot,
            epoch: worker.epoch,
            published_ns: since.as_nanos() as u64,
            deadline_ns: (since + LEASE).as_nanos() as u64,
            clusters: vec![worker.send(requests, now)],
        };
        v1::Report {
            proxy: self.proxy.clone(),
            records: workers.map(record).collect(),
            ..Default::default()
        }
    }
}

impl Worker {
    fn send(&mut self, requests: usize, now: Instant) -> v1::ClusterRecord {
        let mut random = rand::rng();
        for _ in 0..requests {
            let host = random.random_range(0..self.hosts.len());
            let record = &mut self.hosts[host];
            record.assigned += 1;
            record.ok += 1;
            // The answer carries the host's load, as weir-worker's do.
            record.load = Some(v1::Load {
                in_progress: random.random_range(0..20),
                queued: vec![random.random_range(0..5)],
                queuing_delay_us: Some(random.random_range(0..10_000)),
                ..Default::default()
            });
            self.offered += 1;
            let key = random
                .random_range(0..KEYS)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.sent.push_front((now, key, self.ids[host]));
        }
        let old = |(at, ..): &(Instant, u64, u64)| now.duration_since(*at) > ASSUMED;
        while self.sent.back().is_some_and(old) {
            self.sent.pop_back();
        }
        let assigned = |(at, key, host_id): &(Instant, u64, u64)| v1::Assignment {
            key: *key,
            host_id: *host_id,
            age_ms: now.duration_since(*at).as_millis() as u32,
        };
        v1::ClusterRecord {
            cluster: crate::fleet::sidecar::CLUSTER.to_owned(),
            hosts: self.hosts.clone(),
            // Of the class for those that name none, rank by user.
            offered: vec![v1::RankCount {
                rank: 16 * 128,
                count: self.offered,
            }],
            assignments: self.sent.iter().map(assigned).collect(),
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_rise_by_what_was_sent_and_every_host_is_there() {
        let hosts = ["127.0.0.1:1".to_owned(), "127.0.0.1:2".to_owned()];
        let mut reporter = Reporter::new("p".to_owned(), &hosts);
        for report in 1..=3u64 {
            let told = reporter.report(5, Duration::from_secs(report));
            assert_eq!(told.records.len(), 2);
            for record in &told.records {
                let cluster = &record.clusters[0];
                let assigned: u64 = cluster.hosts.iter().map(|host| host.assigned).sum();
                assert_eq!(assigned, 2 + 5 * report);
                assert_eq!(cluster.assignments.len() as u64, 5 * report);
            }
        }
    }
}
