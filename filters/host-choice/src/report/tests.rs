// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

const SECOND_NS: u64 = 1_000_000_000;
const HOSTS: usize = 500;
const VMS: usize = 64;
const RANKS: usize = 256;

fn address(host: usize) -> String {
    format!("10.0.{}.{}:8080", host / 250, host % 250)
}

fn rank_counts(counts: impl IntoIterator<Item = (u32, u64)>) -> Vec<v1::RankCount> {
    let counts = counts.into_iter();
    counts
        .map(|(rank, count)| v1::RankCount { rank, count })
        .collect()
}

/// A VM that has sent so much to each host, evenly by rank.
fn vm(slot: usize, hosts: usize, each: u64) -> v1::VmRecord {
    let counts = || rank_counts((0..RANKS as u32).map(|rank| (rank, each)));
    let host = |host| v1::HostRecord {
        address: address(host),
        in_flight: 1,
        assigned: each * RANKS as u64,
        ok: each * RANKS as u64 - 1,
        admitted: counts(),
        since_ms: 1,
        ..Default::default()
    };
    let assignment = |key| v1::Assignment {
        key,
        host_id: key,
        age_ms: 900,
    };
    v1::VmRecord {
        slot: slot as u32,
        epoch: 1 << 60 | slot as u64,
        published_ns: SECOND_NS,
        deadline_ns: 4 * SECOND_NS,
        clusters: vec![v1::ClusterRecord {
            cluster: "rules".into(),
            hosts: (0..hosts).map(host).collect(),
            offered: counts(),
            assignments: (0..1_024).map(assignment).collect(),
            ..Default::default()
        }],
    }
}

fn heads(vms: &[v1::VmRecord]) -> Vec<v1::VmRecord> {
    let head = |vm: &v1::VmRecord| v1::VmRecord {
        clusters: Vec::new(),
        ..*vm
    };
    vms.iter().map(head).collect()
}

fn next(told: &mut ReportStream, vms: &[v1::VmRecord]) -> Next {
    told.next("p", &heads(vms), |head| {
        vms.iter().find(|vm| vm.slot == head.slot).cloned()
    })
}

/// Everything that is to be told.
fn tell_all(told: &mut ReportStream, vms: &[v1::VmRecord], server: &mut Server) {
    loop {
        let next = next(told, vms);
        server.take(&next.report);
        if !next.more {
            return;
        }
    }
}

/// By VM, cluster and host ("" is what was offered), what was told: in flight, answers and counts by rank.
type Known = BTreeMap<(u32, u64, String, String), (u32, u64, BTreeMap<u32, u64>)>;

/// What weir-control knows.
#[derive(Debug, Default)]
struct Server(Known);

impl Server {
    fn take(&mut self, report: &v1::Report) {
        for vm in &report.records {
            for cluster in &vm.clusters {
                let place = |host: &str| (vm.slot, vm.epoch, cluster.cluster.clone(), host.into());
                let counts = |ranks: &[v1::RankCount]| -> Vec<(u32, u64)> {
                    ranks
                        .iter()
                        .map(|count| (count.rank, count.count))
                        .collect()
                };
                let offered = self.0.entry(place("")).or_default();
                offered.2.extend(counts(&cluster.offered));
                for host in &cluster.hosts {
                    let known = self.0.entry(place(&host.address)).or_default();
                    (known.0, known.1) = (host.in_flight, host.ok);
                    known.2.extend(counts(&host.admitted));
                }
            }
        }
    }

    fn of(vms: &[v1::VmRecord]) -> Self {
        let mut server = Self::default();
        server.take(&v1::Report {
            records: vms.to_vec(),
            ..Default::default()
        });
        server
    }
}

/// Rows of hosts and ranks in a report.
fn rows(report: &v1::Report) -> usize {
    let clusters = || report.records.iter().flat_map(|vm| &vm.clusters);
    let hosts = clusters().flat_map(|cluster| &cluster.hosts);
    hosts.map(|host| host.admitted.len()).sum()
}

/// A second in which each VM sends so many requests, each to another host, each for another key.
fn pass_a_second(vms: &mut [v1::VmRecord], requests: usize) {
    for (slot, vm) in vms.iter_mut().enumerate() {
        vm.published_ns += SECOND_NS;
        let cluster = &mut vm.clusters[0];
        let old = cluster.assignments.iter_mut();
        old.for_each(|old| old.age_ms += 1_000);
        for (number, host) in cluster.hosts.iter_mut().take(requests).enumerate() {
            let rank = (slot * 31 + number * 7) % RANKS;
            (host.ok, host.assigned) = (host.ok + 1, host.assigned + 1);
            host.admitted[rank].count += 1;
            cluster.offered[rank].count += 1;
            host.load = Some(v1::Load {
                age_ms: 5,
                in_progress: 30,
                queued: vec![3, 9],
                queuing_delay_us: Some(3_000),
                ..Default::default()
            });
            let sent = &mut cluster.assignments[number];
            (sent.key, sent.age_ms) = (number as u64, 5);
        }
    }
}

/// As whole records it was 54 MB each second, of which the server takes 16 MiB.
#[test]
fn a_second_of_500_hosts_64_workers_and_256_ranks_is_told_in_a_tenth_of_the_limit() {
    let mut vms: Vec<_> = (0..VMS).map(|slot| vm(slot, HOSTS, 100)).collect();
    let mut told = ReportStream::default();
    let tell = |told: &mut ReportStream, vms: &[v1::VmRecord]| {
        let (mut bytes, mut reports, mut told_rows) = (0, 0, 0);
        loop {
            let next = next(told, vms);
            let length = next.report.encoded_len();
            assert!(length <= MAX_BYTES, "{length}");
            (bytes, reports) = (bytes + length, reports + 1);
            told_rows += rows(&next.report);
            if !next.more {
                return (bytes, reports, told_rows);
            }
        }
    };
    let (bytes, reports, rows) = tell(&mut told, &vms);
    println!("at first {bytes} bytes in {reports} reports");
    assert_eq!(rows, VMS * HOSTS * RANKS, "everything, and once");
    for (requests, limit) in [(250, (16 << 20) / 10), (HOSTS, 2 << 20)] {
        pass_a_second(&mut vms, requests);
        let (bytes, reports, rows) = tell(&mut told, &vms);
        println!("{requests} requests a worker: {bytes} bytes in {reports} reports");
        assert_eq!(rows, VMS * requests);
        assert!(bytes <= limit, "{bytes}");
    }
    let (bytes, _, rows) = tell(&mut told, &vms);
    assert!(rows == 0 && bytes < 10_000, "{bytes}: nothing is new");
}

#[test]
fn a_vm_with_much_to_tell_does_not_keep_the_others_from_it() {
    let mut vms: Vec<_> = (0..3).map(|slot| vm(slot, 2 * HOSTS, 100)).collect();
    let mut told = ReportStream::default();
    let mut heard = BTreeSet::new();
    for round in 1..=3 {
        let next = next(&mut told, &vms);
        let has_news = |vm: &&v1::VmRecord| !vm.clusters.is_empty();
        heard.extend(
            next.report
                .records
                .iter()
                .filter(has_news)
                .map(|vm| vm.slot),
        );
        assert_eq!(next.report.records.len(), 3, "all of them live");
        // All that the first one has is news again.
        vms[0] = vm(0, 2 * HOSTS, 100 + round);
    }
    assert_eq!(heard, BTreeSet::from([0, 1, 2]));
}

#[test]
fn assignments_loads_and_costs_are_told_once() {
    let mut vms = vec![vm(0, 1, 1), vm(1, 1, 1)];
    for vm in &mut vms {
        let cluster = &mut vm.clusters[0];
        cluster.spent = vec![v1::Spent {
            age_ms: 10,
            ..Default::default()
        }];
        cluster.hosts[0].load = Some(v1::Load {
            age_ms: 10,
            ..Default::default()
        });
    }
    let mut told = ReportStream::default();
    let lists = |report: &v1::Report| {
        let clusters = || report.records.iter().flat_map(|vm| &vm.clusters);
        let loads = clusters().flat_map(|cluster| &cluster.hosts);
        let loads = loads.filter(|host| host.load.is_some()).count();
        let sum = |of: fn(&v1::ClusterRecord) -> usize| clusters().map(of).sum::<usize>();
        (
            sum(|one| one.assignments.len()),
            sum(|one| one.spent.len()),
            loads,
        )
    };
    let first = next(&mut told, &vms);
    assert_eq!(
        lists(&first.report),
        (2_048, 2, 1),
        "the host's load once for both"
    );
    for vm in &mut vms {
        vm.published_ns += SECOND_NS / 10;
        let cluster = &mut vm.clusters[0];
        cluster
            .assignments
            .iter_mut()
            .for_each(|one| one.age_ms += 100);
        cluster.spent[0].age_ms += 100;
        cluster.hosts[0].load.as_mut().unwrap().age_ms += 100;
    }
    let again = next(&mut told, &vms);
    assert_eq!(lists(&again.report), (0, 0, 0));
    vms[1].published_ns += SECOND_NS / 10;
    let cluster = &mut vms[1].clusters[0];
    let old = cluster.assignments.iter_mut();
    old.for_each(|one| one.age_ms += 100);
    cluster.spent[0].age_ms += 100;
    cluster.assignments[0].age_ms = 1;
    cluster.hosts[0].load.as_mut().unwrap().age_ms = 1;
    assert_eq!(lists(&next(&mut told, &vms).report), (1, 0, 1));
}

#[test]
fn of_hosts_and_clusters_that_are_gone_nothing_is_left_in_flight() {
    let mut vms = vec![vm(0, 2, 1)];
    let (mut told, mut server) = (ReportStream::default(), Server::default());
    tell_all(&mut told, &vms, &mut server);
    vms[0].clusters[0].hosts.remove(1);
    tell_all(&mut told, &vms, &mut server);
    let in_flight = |server: &Server| server.0.values().map(|host| host.0).sum::<u32>();
    assert_eq!(in_flight(&server), 1);
    vms[0].clusters.clear();
    tell_all(&mut told, &vms, &mut server);
    assert_eq!(in_flight(&server), 0);
    assert!(next(&mut told, &vms).report.records[0].clusters.is_empty());
}

#[derive(Clone, Debug)]
enum Step {
    /// A request of a VM.
    Sent { vm: usize, host: usize, rank: u32 },
    /// A VM dies, and another takes its slot.
    Dies(usize),
    /// A report.
    Report,
    /// The stream is lost and opened again, perhaps to another weir-control.
    Again { forgets: bool },
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => (0..3usize, 0..4usize, 0..5u32).prop_map(|(vm, host, rank)| Step::Sent { vm, host, rank }),
        1 => (0..3usize).prop_map(Step::Dies),
        4 => Just(Step::Report),
        1 => any::<bool>().prop_map(|forgets| Step::Again { forgets }),
    ]
}

proptest! {
    /// Whatever happens, when all is told weir-control knows what it would know of whole records.
    #[test]
    fn changes_add_up_to_whole_records(steps in prop::collection::vec(step(), 0..200)) {
        let empty = |slot: u32, epoch: u64| v1::VmRecord {
            slot,
            epoch,
            published_ns: 1,
            clusters: vec![v1::ClusterRecord { cluster: "c".into(), ..Default::default() }],
            ..Default::default()
        };
        let mut vms = vec![empty(0, 1), empty(1, 1), empty(2, 1)];
        let (mut told, mut server) = (ReportStream::default(), Server::default());
        for (time, step) in steps.into_iter().enumerate() {
            for vm in &mut vms {
                vm.published_ns = 2 + time as u64;
            }
            match step {
                Step::Sent { vm, host, rank } => {
                    let cluster = &mut vms[vm].clusters[0];
                    let address = address(host);
                    let place = cluster.hosts.binary_search_by(|known| known.address.cmp(&address));
                    let place = place.unwrap_or_else(|place| {
                        let new = v1::HostRecord { address, since_ms: 1, ..Default::default() };
                        cluster.hosts.insert(place, new);
                        place
                    });
                    let host = &mut cluster.hosts[place];
                    (host.ok, host.in_flight) = (host.ok + 1, rank);
                    for counts in [&mut host.admitted, &mut cluster.offered] {
                        let place = counts.binary_search_by_key(&rank, |count| count.rank);
                        let place = place.unwrap_or_else(|place| {
                            counts.insert(place, v1::RankCount { rank, count: 0 });
                            place
                        });
                        counts[place].count += 1;
                    }
                }
                Step::Dies(vm) => {
                    let old = &vms[vm];
                    let (slot, epoch) = (old.slot, old.epoch);
                    server.0.retain(|key, _| (key.0, key.1) != (slot, epoch));
                    vms[vm] = empty(slot, epoch + 1);
                }
                Step::Report => server.take(&next(&mut told, &vms).report),
                Step::Again { forgets } => {
                    told = ReportStream::default();
                    if forgets {
                        server = Server::default();
                    }
                }
            }
        }
        tell_all(&mut told, &vms, &mut server);
        prop_assert_eq!(server.0, Server::of(&vms).0);
    }
}
