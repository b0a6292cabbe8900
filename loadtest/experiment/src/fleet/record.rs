// SPDX-License-Identifier: Apache-2.0
//! What an EMULATED sidecar reports: absolute counters of its two workers, and of these what has changed, as the filter
//! does.

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use rand::RngExt;
use weir_policy::HostId;
use weir_tables::v1;

/// How long a key counts as cached where it was sent: weir-control's default.
const ASSUMED: Duration = Duration::from_secs(10);
/// A VM says that it lives, and for how long.
const LEASE: Duration = Duration::from_secs(5);
/// Different keys of the fleet's requests.
const KEYS: u64 = 10_000;
/// From a request to its answer.
const LASTS: Duration = Duration::from_millis(50);

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
    /// Between two requests.
    every: Duration,
    next: Duration,
    /// When they began, and their hosts.
    under_way: VecDeque<(Duration, usize)>,
    sent: VecDeque<(Duration, u64, u64)>,
    /// Hosts of which the stream was not told the newest.
    untold: BTreeSet<usize>,
    told_at: Option<Duration>,
}

impl Reporter {
    /// Of workers that send so many requests a second each.
    pub(crate) fn new(proxy: String, hosts: &[String], requests: usize) -> Self {
        let host = |address: &String| v1::HostRecord {
            address: address.clone(),
            assigned: 1,
            ok: 1,
            ..Default::default()
        };
        let every = Duration::from_secs(1) / requests.max(1) as u32;
        let worker = || Worker {
            epoch: rand::random(),
            hosts: hosts.iter().map(host).collect(),
            ids: hosts.iter().map(|address| HostId::of(address).0).collect(),
            offered: hosts.len() as u64,
            every,
            // Not all of them at one moment.
            next: every.mul_f64(rand::random()),
            under_way: VecDeque::new(),
            sent: VecDeque::new(),
            untold: (0..hosts.len()).collect(),
            told_at: None,
        };
        Self {
            proxy,
            workers: vec![worker(), worker()],
        }
    }

    /// What has happened by `now`. Whether there is anything that the stream was not told.
    pub(crate) fn advance(&mut self, now: Duration) -> bool {
        for worker in &mut self.workers {
            worker.advance(now);
        }
        self.workers.iter().any(|worker| !worker.untold.is_empty())
    }

    /// What the stream was not told; at its start everything.
    pub(crate) fn report(&mut self, now: Duration) -> v1::Report {
        let workers = self.workers.iter_mut().zip(0..);
        let record = |(worker, slot): (&mut Worker, u32)| v1::VmRecord {
            slot,
            epoch: worker.epoch,
            published_ns: now.as_nanos() as u64,
            deadline_ns: (now + LEASE).as_nanos() as u64,
            clusters: vec![worker.tell(now)],
        };
        v1::Report {
            proxy: self.proxy.clone(),
            records: workers.map(record).collect(),
            changes: true,
        }
    }
}

impl Worker {
    fn advance(&mut self, now: Duration) {
        while self.next <= now {
            self.answers(self.next);
            self.begins(self.next);
            self.next += self.every;
        }
        self.answers(now);
        let old = |(at, ..): &(Duration, u64, u64)| now.saturating_sub(*at) > ASSUMED;
        while self.sent.back().is_some_and(old) {
            self.sent.pop_back();
        }
    }

    fn begins(&mut self, at: Duration) {
        let mut random = rand::rng();
        let host = random.random_range(0..self.hosts.len());
        let record = &mut self.hosts[host];
        record.assigned += 1;
        record.in_flight += 1;
        self.offered += 1;
        let key = random
            .random_range(0..KEYS)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.sent.push_front((at, key, self.ids[host]));
        self.under_way.push_back((at, host));
        self.untold.insert(host);
    }

    fn answers(&mut self, now: Duration) {
        let mut random = rand::rng();
        while let Some((_, host)) = self.under_way.pop_front_if(|(at, _)| *at + LASTS <= now) {
            let record = &mut self.hosts[host];
            record.in_flight -= 1;
            record.ok += 1;
            // The answer carries the host's load, as weir-worker's do.
            record.load = Some(v1::Load {
                in_progress: random.random_range(0..20),
                queued: vec![random.random_range(0..5)],
                queuing_delay_us: Some(random.random_range(0..10_000)),
                ..Default::default()
            });
            self.untold.insert(host);
        }
    }

    fn tell(&mut self, now: Duration) -> v1::ClusterRecord {
        let told_at = self.told_at.replace(now);
        let is_first = told_at.is_none();
        let untold = std::mem::take(&mut self.untold);
        let hosts = untold.into_iter().map(|host| {
            let record = &mut self.hosts[host];
            // A load is told once.
            let load = record.load.take();
            v1::HostRecord {
                load,
                whole: is_first,
                ..record.clone()
            }
        });
        let hosts = hosts.collect();
        let is_news = |(at, ..): &&(Duration, u64, u64)| told_at.is_none_or(|told| *at > told);
        let assigned = |(at, key, host_id): &(Duration, u64, u64)| v1::Assignment {
            key: *key,
            host_id: *host_id,
            age_ms: now.saturating_sub(*at).as_millis() as u32,
        };
        v1::ClusterRecord {
            cluster: crate::fleet::sidecar::CLUSTER.to_owned(),
            hosts,
            // Of the class for those that name none, rank by user.
            offered: vec![v1::RankCount {
                rank: 16 * 128,
                count: self.offered,
            }],
            assignments: self.sent.iter().filter(is_news).map(assigned).collect(),
            whole: is_first,
            ..Default::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn hosts(report: &v1::Report) -> impl Iterator<Item = &v1::HostRecord> {
        let clusters = report.records.iter().map(|vm| &vm.clusters[0]);
        clusters.flat_map(|cluster| &cluster.hosts)
    }

    #[test]
    fn a_stream_is_told_everything_once_and_then_what_has_changed() {
        let addresses: Vec<String> = (1..=100).map(|port| format!("127.0.0.1:{port}")).collect();
        let mut reporter = Reporter::new("p".to_owned(), &addresses, 5);
        assert!(reporter.advance(Duration::ZERO));
        let first = reporter.report(Duration::ZERO);
        assert_eq!(hosts(&first).count(), 200);
        assert!(hosts(&first).all(|host| host.whole));
        assert!(!reporter.advance(Duration::ZERO), "nothing is new");
        let mut assigned = 0;
        for second in 1..=3 {
            assert!(reporter.advance(at(1000 * second)));
            let told = reporter.report(at(1000 * second));
            assert!(hosts(&told).count() <= 22 && hosts(&told).all(|host| !host.whole));
            let keys = told.records.iter().map(|vm| &vm.clusters[0].assignments);
            assigned += keys.map(Vec::len).sum::<usize>();
        }
        assert_eq!(assigned, 2 * 5 * 3);
    }

    #[test]
    fn counters_are_absolute_and_what_was_answered_is_no_longer_under_way() {
        let mut reporter = Reporter::new("p".to_owned(), &["127.0.0.1:1".to_owned()], 5);
        for now in (0..=3000).step_by(10) {
            reporter.advance(at(now));
            let told = reporter.report(at(now));
            for host in hosts(&told) {
                assert_eq!(host.assigned, host.ok + u64::from(host.in_flight));
                assert!(host.in_flight <= 1, "one lasts {LASTS:?} of 200 ms");
            }
        }
        let sent: u64 = reporter.workers.iter().map(|vm| vm.hosts[0].assigned).sum();
        assert_eq!(sent, 2 + 2 * 5 * 3);
    }
}
