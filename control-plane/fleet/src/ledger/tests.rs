// SPDX-License-Identifier: Apache-2.0
use super::*;

const LIMITS: ReportLimits = ReportLimits {
    max_proxies: 2,
    max_vms: 2,
    max_rows: 1_000_000,
    max_waiting_bytes: 1 << 30,
    forget_after: Duration::from_secs(60),
};
const NOW: Duration = Duration::from_secs(100);

fn report(proxy: &str, slot: u32, epoch: u64, offered: u64) -> v1::Report {
    let count = |count| vec![v1::RankCount { rank: 5, count }];
    let host = v1::HostRecord {
        address: "a:1".into(),
        admitted: count(offered / 2),
        ok: offered / 2,
        ..Default::default()
    };
    let cluster = v1::ClusterRecord {
        cluster: "c".into(),
        hosts: vec![host],
        offered: count(offered),
        shed: count(offered - offered / 2),
        held: offered / 4,
        ..Default::default()
    };
    let record = v1::VmRecord {
        slot,
        epoch,
        deadline_ns: u64::MAX,
        clusters: vec![cluster],
        published_ns: 1,
    };
    v1::Report {
        proxy: proxy.into(),
        records: vec![record],
        ..Default::default()
    }
}

/// Names of clusters, and of their hosts.
struct Table(&'static [&'static str], &'static [&'static str]);

/// What the reports of these tests name.
const THERE: Table = Table(&["c", "rules"], &["a:1", "b:2", "10.0.0.1:9000"]);

impl Names for Table {
    fn has_cluster(&self, name: &str) -> bool {
        self.0.contains(&name)
    }

    fn has_hosts(&self, cluster: &str) -> bool {
        self.has_cluster(cluster) && !self.1.is_empty()
    }

    fn has_host(&self, cluster: &str, address: &str) -> bool {
        self.has_cluster(cluster) && self.1.contains(&address)
    }
}

fn refused(tally: &Tally) -> Vec<(Refused, u64)> {
    tally.iter().collect()
}

fn offered(ledger: &mut Ledger, report: &v1::Report) -> u64 {
    let news = ledger.fold(report, &THERE, NOW, &LIMITS).news;
    news.values().flat_map(|news| news.offered.values()).sum()
}

#[test]
fn a_report_has_one_record_of_each_vm_and_no_more_than_there_may_be() {
    let mut ledger = Ledger::default();
    let mut many = report("p", 0, 1, 100);
    let again = vec![many.records[0].clone(); 1000];
    let empty = v1::VmRecord {
        deadline_ns: u64::MAX,
        ..v1::VmRecord::default()
    };
    many.records.extend(again);
    many.records.push(empty);
    let folded = ledger.fold(&many, &THERE, NOW, &LIMITS);
    assert_eq!(refused(&folded.refused), [(Refused::TooManyVms, 1001)]);
    assert_eq!(ledger.proxies["p"].vms.len(), 1);
}

#[test]
fn connections_that_were_not_taken_count_once_by_host() {
    let mut ledger = Ledger::default();
    let mut unconnected = |count| {
        let mut report = report("p", 0, 1, 0);
        report.records[0].clusters[0].hosts[0].unconnected = count;
        let mut news = ledger.fold(&report, &THERE, NOW, &LIMITS).news;
        news.remove("c").unwrap().unconnected
    };
    assert_eq!(unconnected(5), BTreeMap::new(), "counting begins");
    assert_eq!(unconnected(7), BTreeMap::from([("a:1".to_owned(), 2)]));
    assert_eq!(unconnected(7), BTreeMap::new());
}

#[test]
fn what_hosts_have_to_read_counts_once_by_host() {
    let mut ledger = Ledger::default();
    let mut reading = |micros| {
        let mut report = report("p", 0, 1, 0);
        report.records[0].clusters[0].hosts[0].reading_us = micros;
        let mut news = ledger.fold(&report, &THERE, NOW, &LIMITS).news;
        news.remove("c").unwrap().reading_us
    };
    assert_eq!(reading(500), BTreeMap::new(), "counting begins");
    assert_eq!(reading(1700), BTreeMap::from([("a:1".to_owned(), 1200)]));
    assert_eq!(reading(1700), BTreeMap::new());
}

#[test]
fn only_what_is_new_counts_however_often_it_is_said() {
    let mut ledger = Ledger::default();
    assert_eq!(
        offered(&mut ledger, &report("p", 0, 1, 1000)),
        0,
        "counting begins"
    );
    assert_eq!(offered(&mut ledger, &report("p", 0, 1, 1010)), 10);
    assert_eq!(offered(&mut ledger, &report("p", 0, 1, 1010)), 0);
    assert_eq!(
        offered(&mut ledger, &report("p", 0, 1, 1005)),
        0,
        "an old report"
    );
    assert_eq!(offered(&mut ledger, &report("p", 0, 1, 1020)), 10);
}

#[test]
fn a_new_life_of_a_vm_counts_from_zero() {
    let mut ledger = Ledger::default();
    offered(&mut ledger, &report("p", 0, 1, 1000));
    let folded = ledger.fold(&report("p", 0, 2, 8), &THERE, NOW, &LIMITS);
    let rank = Rank::from_number(5).unwrap();
    assert_eq!(refused(&folded.refused), []);
    let news = folded.news;
    assert_eq!(news["c"].offered[&rank], 8);
    assert_eq!(news["c"].admitted["a:1"][&rank], 4);
    assert_eq!(
        (news["c"].shed[&rank], news["c"].outcomes),
        (4, [4, 0, 0, 0])
    );
    assert_eq!(news["c"].held, 2);
    assert_eq!(
        offered(&mut ledger, &report("p", 0, 1, 1001)),
        1,
        "the old life is not forgotten at once"
    );
}

#[test]
fn proxies_and_vms_are_bounded_and_forgotten() {
    let mut ledger = Ledger::default();
    let fold = |ledger: &mut Ledger, proxy, slot, now| {
        let folded = ledger.fold(&report(proxy, slot, 1, 1), &THERE, now, &LIMITS);
        refused(&folded.refused)
    };
    assert_eq!(fold(&mut ledger, "p", 0, NOW), []);
    assert_eq!(fold(&mut ledger, "p", 1, NOW), []);
    let too_many = [(Refused::TooManyVms, 1)];
    assert_eq!(fold(&mut ledger, "p", 2, NOW), too_many);
    assert_eq!(fold(&mut ledger, "q", 0, NOW), []);
    let too_many = [(Refused::TooManyProxies, 1)];
    assert_eq!(fold(&mut ledger, "r", 0, NOW), too_many);
    assert!(ledger.rows() > 0);
    ledger.forget(NOW + Duration::from_secs(61), &LIMITS);
    assert_eq!((ledger.proxies(), ledger.rows()), (0, 0));
}

#[test]
fn a_record_that_a_dead_vm_left_behind_is_dropped() {
    let mut report = report("p", 0, 1, 1);
    let mut dead = report.records[0].clone();
    (dead.slot, dead.deadline_ns) = (1, 9);
    report.records[0].published_ns = 10;
    report.records.push(dead);
    let folded = Ledger::default().fold(&report, &THERE, NOW, &LIMITS);
    assert_eq!(refused(&folded.refused), [(Refused::Expired, 1)]);
}

#[test]
fn ages_count_from_when_the_record_was_written() {
    let mut report = report("p", 0, 1, 1);
    let mut old = report.records[0].clone();
    old.slot = 1;
    old.clusters[0].assignments = vec![v1::Assignment {
        key: 7,
        host_id: 8,
        age_ms: 500,
    }];
    old.clusters[0].hosts[0].load = Some(v1::Load {
        age_ms: 250,
        in_progress: 3,
        ..Default::default()
    });
    (old.published_ns, report.records[0].published_ns) = (1_000_000_000, 3_000_000_000);
    report.records.push(old);
    let news = Ledger::default().fold(&report, &THERE, NOW, &LIMITS).news;
    assert_eq!(
        news["c"].assignments,
        [(KeyHash(7), HostId(8), Duration::from_millis(97_500))]
    );
    assert_eq!(news["c"].loads[0].2, Duration::from_millis(97_750));
}

#[test]
fn assignments_that_a_record_repeats_are_told_once() {
    let mut ledger = Ledger::default();
    let mut at = |published_ms: u64, assigned_ms: &[u64]| {
        let mut report = report("p", 0, 1, 1);
        let assignment = |ms: &u64| v1::Assignment {
            key: *ms,
            host_id: 8,
            age_ms: (published_ms - ms) as u32,
        };
        report.records[0].published_ns = published_ms * 1_000_000;
        report.records[0].clusters[0].assignments = assigned_ms.iter().map(assignment).collect();
        let news = ledger.fold(&report, &THERE, NOW, &LIMITS).news;
        let keys = news["c"].assignments.iter().map(|(key, ..)| key.0);
        keys.collect::<Vec<u64>>()
    };
    assert_eq!(at(1000, &[900, 100]), [900, 100]);
    assert_eq!(at(2000, &[1500, 1001, 900, 100]), [1500, 1001]);
    assert!(at(2000, &[1500]).is_empty());
    assert!(at(1500, &[900]).is_empty(), "an old record");
    assert!(
        at(2000, &[1900]).is_empty(),
        "it has not moved the mark back"
    );
}

#[test]
fn counts_beyond_all_bounds_do_not_overflow() {
    let mut ledger = Ledger::default();
    offered(&mut ledger, &report("p", 0, 1, 0));
    let mut twice = report("p", 0, 1, u64::MAX);
    let mut other = twice.records[0].clone();
    other.slot = 1;
    let again = twice.records[0].clusters[0].clone();
    twice.records[0].clusters.push(again);
    twice.records.push(other);
    assert_eq!(offered(&mut ledger, &twice), 0);
    assert_eq!(offered(&mut ledger, &twice), 0);
}

#[test]
fn ranks_that_do_not_exist_are_ignored() {
    let mut ledger = Ledger::default();
    ledger.fold(&report("p", 0, 1, 1), &THERE, NOW, &LIMITS);
    let mut report = report("p", 0, 1, 2);
    report.records[0].clusters[0].offered[0].rank = 4096;
    let folded = ledger.fold(&report, &THERE, NOW, &LIMITS);
    assert_eq!(refused(&folded.refused), [(Refused::UnknownRank, 1)]);
    assert!(folded.news["c"].offered.is_empty());
}

/// The played lie: a million requests of the most important rank in a second.
#[test]
fn a_leap_is_refused_and_counting_goes_on_from_there() {
    let mut ledger = Ledger::default();
    let mut told = |count, seconds| {
        let now = NOW + Duration::from_secs(seconds);
        let folded = ledger.fold(&report("p", 0, 1, count), &THERE, now, &LIMITS);
        let offered = folded.news["c"].offered.values().sum();
        (offered, refused(&folded.refused))
    };
    let leap = vec![(Refused::Leap, 1)];
    assert_eq!(told(0, 0), (0, vec![]));
    for second in 1..10u64 {
        assert_eq!(told(second * 1_000_000, second), (0, leap.clone()));
    }
    assert_eq!(told(9_010_000, 10), (10_000, vec![]));
    assert_eq!(told(u64::MAX, 11), (0, leap));
}

#[test]
fn hosts_and_clusters_that_nobody_has_named_are_refused_and_counted() {
    let mut ledger = Ledger::default();
    offered(&mut ledger, &report("p", 0, 1, 0));
    let mut lie = report("p", 0, 1, 100);
    let cluster = &mut lie.records[0].clusters[0];
    cluster.hosts[0].address = "6.6.6.6:6".into();
    cluster.hosts[0].unconnected = 9;
    cluster.hosts[0].load = Some(v1::Load::default());
    let mut other = cluster.clone();
    other.cluster = "made up".into();
    lie.records[0].clusters.push(other);
    let folded = ledger.fold(&lie, &THERE, NOW, &LIMITS);
    let expected = [(Refused::UnknownCluster, 1), (Refused::UnknownHost, 1)];
    assert_eq!(refused(&folded.refused), expected);
    assert_eq!(folded.news.len(), 1);
    let news = &folded.news["c"];
    assert!(news.admitted.is_empty() && news.unconnected.is_empty() && news.loads.is_empty());
    assert_eq!(news.outcomes, [0; 4]);
}

#[test]
fn hosts_that_have_left_or_are_still_to_be_found_are_nobodys_lie() {
    let mut ledger = Ledger::default();
    let mut told = |there: &Table, seconds| {
        let now = NOW + Duration::from_secs(seconds);
        let folded = ledger.fold(&report("p", 0, 1, 1), there, now, &LIMITS);
        ledger.prune(&[], &[("c".to_owned(), HostId::of("a:1"))], NOW);
        ledger.forget(now, &LIMITS);
        refused(&folded.refused)
    };
    let away = [(Refused::HostAway, 1)];
    assert_eq!(told(&Table(&["c"], &[]), 0), away, "still to be found");
    assert_eq!(told(&Table(&["c"], &["b:2"]), 1), away, "it has left");
    let mut late = Ledger::default();
    late.prune(&[], &[("c".to_owned(), HostId::of("a:1"))], NOW);
    late.forget(NOW + LEAVING * 2, &LIMITS);
    let folded = late.fold(
        &report("p", 0, 1, 1),
        &Table(&["c"], &["b:2"]),
        NOW,
        &LIMITS,
    );
    assert_eq!(refused(&folded.refused), [(Refused::UnknownHost, 1)]);
}

#[test]
fn assignments_and_costs_beyond_what_a_filter_keeps_are_refused() {
    let mut report = report("p", 0, 1, 0);
    let cluster = &mut report.records[0].clusters[0];
    cluster.assignments = vec![v1::Assignment::default(); 1_030];
    cluster.spent = vec![v1::Spent::default(); 1_025];
    let folded = Ledger::default().fold(&report, &THERE, NOW, &LIMITS);
    let expected = [(Refused::TooManyAssignments, 6), (Refused::TooManySpent, 1)];
    assert_eq!(refused(&folded.refused), expected);
    assert_eq!(folded.news["c"].assignments.len(), 1_024);
    assert_eq!(folded.news["c"].spent.len(), 1_024);
}

/// The played attack: 10 MiB of hosts and ranks of one living VM each time, others each time, and empty reports after
/// it for as long as one likes. It took 190 MB each time, and kept them.
#[test]
fn what_is_kept_of_one_living_vm_is_bounded_by_what_there_is() {
    let mut ledger = Ledger::default();
    let attack = |round: u32| {
        let mut attack = report("p", 0, 1, 1);
        let host = |host: u32| v1::HostRecord {
            address: format!("10.{round}.{}.{}:80", host / 250, host % 250),
            admitted: every_rank(),
            ..Default::default()
        };
        attack.records[0].clusters[0].hosts = (0..20).map(host).collect();
        attack.records[0].clusters[0].hosts.push(v1::HostRecord {
            address: "a:1".into(),
            ..host(0)
        });
        attack
    };
    for round in 0..12 {
        ledger.fold(&attack(round), &THERE, NOW, &LIMITS);
    }
    // One rank was offered and shed; one host is known, with all ranks that there are.
    let kept = VM_ROWS + CLUSTER_ROWS + 2;
    assert_eq!(ledger.rows(), kept + 8 + 4096);
    assert_eq!(ledger.most_refused(1)[0].0, "p");
    ledger.prune(&[], &[("c".to_owned(), HostId::of("a:1"))], NOW);
    assert_eq!(ledger.rows(), kept, "the host has left the table");
}

fn every_rank() -> Vec<v1::RankCount> {
    let ranks = 0..4096;
    ranks.map(|rank| v1::RankCount { rank, count: 1 }).collect()
}

#[test]
fn counters_of_one_proxy_and_of_all_have_a_limit_and_what_is_counted_stays_right() {
    let limits = ReportLimits {
        max_rows: 5 * (VM_ROWS + CLUSTER_ROWS + 2 + 8 + 3),
        ..LIMITS
    };
    let mut ledger = Ledger::default();
    let mut told = report("p", 0, 1, 1);
    told.records[0].clusters[0].hosts[0].admitted = every_rank();
    let folded = ledger.fold(&told, &THERE, NOW, &limits);
    let expected = [(Refused::TooManyRows, 4096 - 3)];
    assert_eq!(refused(&folded.refused), expected);
    assert_eq!(ledger.rows(), limits.max_rows / 5);
    // Ranks that are kept go on to count, and the others never.
    for count in &mut told.records[0].clusters[0].hosts[0].admitted {
        count.count += 5;
    }
    let folded = ledger.fold(&told, &THERE, NOW, &limits);
    let admitted = &folded.news["c"].admitted["a:1"];
    assert_eq!(admitted.values().copied().collect::<Vec<_>>(), [5, 5, 5]);
}

#[test]
fn a_vm_and_a_cluster_without_a_counter_count_as_what_they_take() {
    let limits = ReportLimits {
        max_vms: 100,
        max_rows: 5 * 10 * (VM_ROWS + CLUSTER_ROWS),
        ..LIMITS
    };
    let empty = |slot| v1::VmRecord {
        slot,
        clusters: vec![v1::ClusterRecord {
            cluster: "c".into(),
            ..Default::default()
        }],
        ..report("p", 0, 1, 1).records.remove(0)
    };
    let report = v1::Report {
        proxy: "p".into(),
        records: (0..12).map(empty).collect(),
        ..Default::default()
    };
    let mut ledger = Ledger::default();
    let folded = ledger.fold(&report, &THERE, NOW, &limits);
    assert_eq!(refused(&folded.refused), [(Refused::TooManyRows, 2)]);
    assert_eq!(ledger.rows(), limits.max_rows / 5);
    ledger.forget(NOW + Duration::from_secs(61), &limits);
    assert_eq!(ledger.rows(), 0);
}

#[test]
fn a_receipt_that_is_small_until_it_is_decoded_is_none() {
    let mut told = report("p", 0, 1, 1);
    let looks = |count| v1::Stub {
        age_ms: 0,
        receipt: v1::Receipt {
            looks: vec![v1::Look::default(); count],
            ..Default::default()
        }
        .encode_to_vec(),
    };
    told.records[0].clusters[0].receipts = vec![looks(64), looks(5000)];
    let folded = Ledger::default().fold(&told, &THERE, NOW, &LIMITS);
    let kept = &folded.news["c"].receipts;
    assert_eq!(kept.len(), 1);
    assert!(kept[0].bytes > 64 * size_of::<v1::Look>());
}

#[test]
fn the_log_says_what_is_refused_of_a_proxy_once_a_minute() {
    let mut ledger = Ledger::default();
    let mut warned = |seconds, clusters: &[&str]| {
        let mut report = report("p", 0, 1, 1);
        let cluster = report.records[0].clusters.remove(0);
        report.records[0].clusters = clusters
            .iter()
            .map(|name| v1::ClusterRecord {
                cluster: (*name).to_owned(),
                ..cluster.clone()
            })
            .collect();
        let now = NOW + Duration::from_secs(seconds);
        let warning = ledger.fold(&report, &THERE, now, &LIMITS).warning;
        warning.map(|tally| tally.to_string())
    };
    assert_eq!(warned(0, &["c"]), None);
    assert_eq!(
        warned(1, &["x", "y"]).as_deref(),
        Some("unknown_cluster: 2")
    );
    assert_eq!(warned(2, &["x"]), None);
    assert_eq!(warned(60, &["x"]), None);
    assert_eq!(warned(61, &["x"]).as_deref(), Some("unknown_cluster: 3"));
    assert_eq!(warned(200, &["c"]), None);
}

/// Changes of one VM as a filter tells them.
struct Teller(Ledger);

impl Teller {
    fn tells(&mut self, at_ms: u64, hosts: Vec<v1::HostRecord>, offered: u64) -> News {
        let mut report = report("p", 0, 1, offered);
        report.changes = true;
        let record = &mut report.records[0];
        record.published_ns = at_ms * 1_000_000;
        record.clusters[0].hosts = hosts;
        let mut folded = self.0.fold(&report, &THERE, NOW, &LIMITS);
        assert_eq!(refused(&folded.refused), []);
        folded.news.remove("c").unwrap()
    }

    /// It becomes known, with nothing.
    fn known() -> Self {
        let mut teller = Self(Ledger::default());
        teller.tells(10, vec![], 0);
        teller
    }
}

fn host(address: &str, since_ms: u64, whole: bool, count: u64) -> v1::HostRecord {
    v1::HostRecord {
        address: address.into(),
        admitted: vec![v1::RankCount { rank: 5, count }],
        in_flight: 2,
        ok: count,
        since_ms: if whole { since_ms } else { 0 },
        whole,
        ..Default::default()
    }
}

fn admitted(news: &News, address: &str) -> u64 {
    let counts = news.admitted.get(address);
    counts.map_or(0, |counts| counts.values().sum())
}

#[test]
fn of_changes_what_is_left_out_stays_as_it_was() {
    let mut teller = Teller::known();
    let news = teller.tells(
        20,
        vec![host("a:1", 20, true, 7), host("b:2", 20, true, 3)],
        10,
    );
    assert_eq!((admitted(&news, "a:1"), admitted(&news, "b:2")), (7, 3));
    assert_eq!(news.outcomes, [10, 0, 0, 0]);
    assert_eq!(teller.0.in_flight(NOW), 4);
    let news = teller.tells(30, vec![host("b:2", 20, false, 4)], 11);
    assert_eq!((admitted(&news, "a:1"), admitted(&news, "b:2")), (0, 1));
    assert_eq!(news.outcomes, [1, 0, 0, 0]);
    assert_eq!(
        teller.0.in_flight(NOW),
        4,
        "also of the host that is left out"
    );
    let news = teller.tells(40, vec![], 11);
    assert_eq!((news.offered.len(), news.outcomes), (0, [0; 4]));
}

#[test]
fn the_first_report_of_an_unknown_proxy_may_come_in_parts_and_is_no_burst() {
    let mut teller = Teller(Ledger::default());
    let news = teller.tells(1_000, vec![host("a:1", 20, true, 70_000)], 1_000);
    assert_eq!(admitted(&news, "a:1"), 0);
    let news = teller.tells(1_050, vec![host("b:2", 20, true, 70_000)], 1_000);
    assert_eq!(admitted(&news, "b:2"), 0, "old counters in the second part");
    let news = teller.tells(2_000, vec![host("b:2", 20, false, 70_009)], 1_000);
    assert_eq!(admitted(&news, "b:2"), 9);
}

#[test]
fn a_host_that_left_and_came_back_counts_from_zero_only_where_its_counters_do() {
    let mut teller = Teller::known();
    teller.tells(20, vec![host("a:1", 20, true, 100)], 100);
    // The filter dropped them, and the server did not notice.
    let news = teller.tells(30, vec![host("a:1", 30, true, 4)], 100);
    assert_eq!(admitted(&news, "a:1"), 4);
    // The server dropped them, and the filter did not notice.
    teller
        .0
        .prune(&[], &[("c".to_owned(), HostId::of("a:1"))], NOW);
    let news = teller.tells(40, vec![host("a:1", 30, false, 90)], 100);
    assert_eq!(admitted(&news, "a:1"), 0);
    let mut more = host("a:1", 30, false, 91);
    more.admitted.push(v1::RankCount { rank: 6, count: 80 });
    let news = teller.tells(50, vec![more], 100);
    assert_eq!(
        admitted(&news, "a:1"),
        1,
        "of the other rank nothing was known"
    );
    // A record of before both.
    let news = teller.tells(45, vec![host("a:1", 20, true, 120)], 100);
    assert_eq!(admitted(&news, "a:1"), 0);
}

/// What is kept of the older release is said beside the file.
#[test]
fn a_report_of_an_older_filter_counts_by_what_it_tells() {
    let bytes = include_bytes!("../../../../filters/tables/golden/previous/report.bin");
    let mut report = <v1::Report as prost::Message>::decode(&bytes[..]).unwrap();
    let mut ledger = Ledger::default();
    ledger.fold(&report, &THERE, NOW, &LIMITS);
    let record = &mut report.records[0];
    record.published_ns += 1;
    let cluster = &mut record.clusters[0];
    cluster.offered[0].count = 110;
    (cluster.hosts[0].ok, cluster.hosts[0].admitted[0].count) = (95, 106);
    let mut folded = ledger.fold(&report, &THERE, NOW, &LIMITS);
    assert_eq!(refused(&folded.refused), []);
    let news = folded.news.remove("rules").unwrap();
    let rank = Rank::from_number(64).unwrap();
    assert_eq!(news.offered, BTreeMap::from([(rank, 10)]));
    let admitted = BTreeMap::from([("10.0.0.1:9000".to_owned(), BTreeMap::from([(rank, 6)]))]);
    assert_eq!(news.admitted, admitted);
    // It told what was shed without ranks, which nobody reads.
    assert_eq!(news.shed, BTreeMap::new());
    assert_eq!((news.held, news.outcomes), (0, [5, 0, 0, 0]));
    assert!(news.spent.is_empty() && news.unconnected.is_empty());
}

#[test]
fn requests_in_flight_are_those_of_the_newest_records_of_vms_that_live() {
    let mut ledger = Ledger::default();
    let mut told = |slot, published_ns, in_flight, seconds| {
        let mut report = report("p", slot, 1, 0);
        let record = &mut report.records[0];
        record.published_ns = published_ns;
        record.clusters[0].hosts[0].in_flight = in_flight;
        let now = NOW + Duration::from_secs(seconds);
        ledger.fold(&report, &THERE, now, &LIMITS);
        ledger.in_flight(now)
    };
    assert_eq!(told(0, 1, 3, 0), 3);
    assert_eq!(told(1, 2, 4, 1), 7);
    assert_eq!(told(0, 3, 1, 2), 5);
    assert_eq!(told(0, 2, 9, 3), 5, "an older record");
    assert_eq!(told(0, 4, 1, 7), 1, "a VM that was killed is in no report");
}

#[test]
fn a_vm_that_is_forgotten_leaves_nothing_under_way_however_soon_that_is() {
    for forget_after in [1, 60] {
        let limits = ReportLimits {
            forget_after: Duration::from_secs(forget_after),
            ..LIMITS
        };
        let mut ledger = Ledger::default();
        let mut told = report("p", 0, 1, 0);
        told.records[0].clusters[0].hosts[0].in_flight = 3;
        let mut sum = 0;
        for news in ledger.fold(&told, &THERE, NOW, &limits).news.values() {
            sum += news
                .under_way
                .iter()
                .map(|(_, change)| change.by)
                .sum::<i64>();
        }
        assert_eq!(sum, 3);
        for second in 1..100 {
            let now = NOW + Duration::from_secs(second);
            let ended = ledger.bury(now, &limits);
            sum += ended.iter().map(|(_, _, change)| change.by).sum::<i64>();
            ledger.forget(now, &limits);
        }
        assert_eq!((sum, ledger.proxies()), (0, 0), "{forget_after} s");
    }
}
