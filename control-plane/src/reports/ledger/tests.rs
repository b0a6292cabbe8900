// SPDX-License-Identifier: Apache-2.0
use super::*;

const LIMITS: ReportLimits = ReportLimits {
    max_proxies: 2,
    max_vms: 2,
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
        shed: offered - offered / 2,
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
    }
}

fn offered(ledger: &mut Ledger, report: &v1::Report) -> u64 {
    let (news, _) = ledger.fold(report, NOW, &LIMITS);
    news.values().flat_map(|news| news.offered.values()).sum()
}

#[test]
fn connections_that_were_not_taken_count_once_by_host() {
    let mut ledger = Ledger::default();
    let mut unconnected = |count| {
        let mut report = report("p", 0, 1, 0);
        report.records[0].clusters[0].hosts[0].unconnected = count;
        let (mut news, _) = ledger.fold(&report, NOW, &LIMITS);
        news.remove("c").unwrap().unconnected
    };
    assert_eq!(unconnected(5), BTreeMap::new(), "counting begins");
    assert_eq!(unconnected(7), BTreeMap::from([("a:1".to_owned(), 2)]));
    assert_eq!(unconnected(7), BTreeMap::new());
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
    let (news, dropped) = ledger.fold(&report("p", 0, 2, 8), NOW, &LIMITS);
    let rank = Rank::from_number(5).unwrap();
    assert_eq!(dropped, []);
    assert_eq!(news["c"].offered[&rank], 8);
    assert_eq!(news["c"].admitted["a:1"][&rank], 4);
    assert_eq!((news["c"].shed, news["c"].outcomes), (4, [4, 0, 0, 0]));
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
        ledger.fold(&report(proxy, slot, 1, 1), now, &LIMITS).1
    };
    assert_eq!(fold(&mut ledger, "p", 0, NOW), []);
    assert_eq!(fold(&mut ledger, "p", 1, NOW), []);
    assert_eq!(fold(&mut ledger, "p", 2, NOW), [Dropped::TooManyVms]);
    assert_eq!(fold(&mut ledger, "q", 0, NOW), []);
    assert_eq!(fold(&mut ledger, "r", 0, NOW), [Dropped::TooManyProxies]);
    ledger.forget(NOW + Duration::from_secs(61), &LIMITS);
    assert_eq!(ledger.proxies(), 0);
}

#[test]
fn a_record_that_a_dead_vm_left_behind_is_dropped() {
    let mut report = report("p", 0, 1, 1);
    let mut dead = report.records[0].clone();
    (dead.slot, dead.deadline_ns) = (1, 9);
    report.records[0].published_ns = 10;
    report.records.push(dead);
    assert_eq!(
        Ledger::default().fold(&report, NOW, &LIMITS).1,
        [Dropped::Expired]
    );
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
    let (news, _) = Ledger::default().fold(&report, NOW, &LIMITS);
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
        let (news, _) = ledger.fold(&report, NOW, &LIMITS);
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
    twice.records.push(other);
    assert_eq!(offered(&mut ledger, &twice), u64::MAX);
}

#[test]
fn ranks_that_do_not_exist_are_ignored() {
    let mut report = report("p", 0, 1, 1);
    Ledger::default().fold(&report, NOW, &LIMITS);
    report.records[0].clusters[0].offered[0].rank = 4096;
    assert_eq!(offered(&mut Ledger::default(), &report), 0);
}

/// What is kept of the older release is said beside the file.
#[test]
fn a_report_of_an_older_filter_counts_by_what_it_tells() {
    let bytes = include_bytes!("../../../../filters/tables/golden/previous/report.bin");
    let mut report = <v1::Report as prost::Message>::decode(&bytes[..]).unwrap();
    let mut ledger = Ledger::default();
    ledger.fold(&report, NOW, &LIMITS);
    let record = &mut report.records[0];
    record.published_ns += 1;
    let cluster = &mut record.clusters[0];
    (cluster.offered[0].count, cluster.shed) = (110, 9);
    (cluster.hosts[0].ok, cluster.hosts[0].admitted[0].count) = (95, 106);
    let (mut news, dropped) = ledger.fold(&report, NOW, &LIMITS);
    assert_eq!(dropped, []);
    let news = news.remove("rules").unwrap();
    let rank = Rank::from_number(64).unwrap();
    assert_eq!(news.offered, BTreeMap::from([(rank, 10)]));
    let admitted = BTreeMap::from([("10.0.0.1:9000".to_owned(), BTreeMap::from([(rank, 6)]))]);
    assert_eq!(news.admitted, admitted);
    assert_eq!((news.shed, news.held, news.outcomes), (2, 0, [5, 0, 0, 0]));
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
        ledger.fold(&report, now, &LIMITS);
        ledger.in_flight(now)
    };
    assert_eq!(told(0, 1, 3, 0), 3);
    assert_eq!(told(1, 2, 4, 1), 7);
    assert_eq!(told(0, 3, 1, 2), 5);
    assert_eq!(told(0, 2, 9, 3), 5, "an older record");
    assert_eq!(told(0, 4, 1, 7), 1, "a VM that was killed is in no report");
}
