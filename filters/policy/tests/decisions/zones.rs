// SPDX-License-Identifier: Apache-2.0
//! The caller's own zone comes first for as long as it has room: what crossing takes is one term of the finish.

use proptest::prelude::*;
use weir_policy::{
    CacheShard, Cluster, Cost, Host, Load, Policy, Reason, Request, Selection, Table, TableError,
};

use crate::fleet::{
    NOW, chosen, host, id, key, load, millis, named, request, rng, seconds, select,
};

/// Of the four cores of each host so many are busy, or jobs wait; it is in the zone with this number.
fn busy(number: usize, zone: u32, in_progress: u32) -> Host {
    Host {
        capacity_millicores: 4000,
        load: Some(Load {
            busy_cores: Some(in_progress.min(4)),
            ..load(NOW, in_progress, in_progress.saturating_sub(4))
        }),
        zone,
        ..host(number)
    }
}

/// In zones 1, `near`, and 2, `far`, as a caller in `near` sees it. Requests take 100 ms to fetch and 400 ms to run.
fn cluster(mut hosts: Vec<Host>, crossing_ms: u64, callers: u32) -> Cluster {
    hosts.sort_by(|a, b| a.address.cmp(&b.address));
    let policy = Policy {
        crossing: millis(crossing_ms),
        ..select(Selection::Estimate)
    };
    let mean = Cost {
        fetch: millis(100),
        run: millis(400),
    };
    let table = Table::new(policy, hosts, 1).unwrap();
    let table = table.with_zones(vec!["near".into(), "far".into()]).unwrap();
    let mut cluster = Cluster::default();
    let table = table.with_mean_cost(mean).with_callers(callers);
    cluster.set_table(table.seen_from("near"), NOW, NOW);
    cluster
}

fn first(cluster: &Cluster, request: &Request) -> (weir_policy::HostId, Reason) {
    let decision = cluster.decide(request, NOW, &mut rng(1));
    (named(cluster, &decision)[0], decision.reason)
}

#[test]
fn requests_leave_the_zone_when_they_are_done_sooner_elsewhere_in_spite_of_the_crossing() {
    let at = |crossing_ms, waiting: u32| {
        let hosts = vec![busy(0, 1, 4 + waiting), busy(1, 2, 0)];
        first(&cluster(hosts, crossing_ms, 0), &request(None)).0
    };
    // Four cores have to do what waits, and one job more, each 400 ms of core time.
    assert_eq!([at(450, 3), at(450, 4)], [id(0), id(1)]);
    assert_eq!(at(0, 0), id(1), "zones make no difference");
    let idle = |crossing_ms| {
        let hosts = vec![busy(0, 1, 3), busy(1, 2, 0)];
        first(&cluster(hosts, crossing_ms, 0), &request(None)).0
    };
    assert_eq!([idle(0), idle(1)], [id(1), id(0)], "a core is idle in both");
}

#[test]
fn data_in_another_zone_are_gone_for_where_crossing_takes_less_than_the_fetch() {
    let at = |crossing_ms| {
        let mut cluster = cluster(vec![busy(0, 2, 0), busy(1, 1, 0)], crossing_ms, 0);
        let shard = CacheShard::new(0, 1, vec![id(0)], vec![key(1).0], vec![1], vec![0]).unwrap();
        cluster.set_cache_shard(0, shard.with_costs(&[400_000], &[1_000_000]).unwrap());
        first(&cluster, &request(Some(key(1))))
    };
    assert_eq!(at(399), (id(0), Reason::KnownCached));
    assert_eq!(at(401), (id(1), Reason::NotCached));
}

#[test]
fn of_many_hosts_and_with_many_callers_one_of_the_own_zone_is_found() {
    let hosts = (0..400).map(|number| busy(number, 1 + u32::from(number % 4 > 0), 1));
    let cluster = cluster(hosts.collect(), 50, 64);
    let far = |seed| {
        let host = chosen(&cluster, Some(key(9)), &mut rng(seed));
        let hosts = cluster.table().unwrap().hosts();
        let zone = hosts.iter().find(|row| row.id() == host).unwrap().zone;
        zone == 2
    };
    // Two looks with eight draws each: in vain at 0.75^16, a hundredth.
    let crossed = (0..2000).filter(|seed| far(*seed)).count();
    assert!(crossed < 60, "{crossed} of 2,000 crossed");
}

#[test]
fn a_zone_that_is_unknown_is_not_elsewhere() {
    let table = || {
        let hosts = vec![busy(0, 0, 0), busy(1, 2, 0)];
        let table = Table::new(select(Selection::Estimate), hosts, 0).unwrap();
        table.with_zones(vec!["near".into(), "far".into()]).unwrap()
    };
    let elsewhere = |zone: &str| {
        let table = table().seen_from(zone);
        let hosts = table.hosts().iter();
        hosts
            .map(|host| table.is_elsewhere(host))
            .collect::<Vec<_>>()
    };
    assert_eq!(elsewhere(""), [false, false]);
    assert_eq!(elsewhere("far"), [false, false]);
    assert_eq!(elsewhere("near"), [false, true]);
    assert_eq!(elsewhere("nobody's"), [false, true]);
}

#[test]
fn a_zone_that_has_no_name_is_refused() {
    let table = Table::new(Policy::default(), vec![busy(0, 3, 0)], 0).unwrap();
    let error = table.with_zones(vec!["a".into(), "b".into()]).unwrap_err();
    let expected = TableError::BadZone {
        index: 0,
        zone: 3,
        zones: 2,
    };
    assert_eq!(error, expected);
    let table = Table::new(Policy::default(), Vec::new(), 0).unwrap();
    let zones = (0..257).map(|number| number.to_string()).collect();
    assert!(table.with_zones(zones).is_err());
}

proptest! {
    #[test]
    fn without_a_crossing_nothing_hangs_on_zones_and_with_one_the_account_tells_of_it(
        zones in prop::collection::vec((0u32..3, 0u32..12), 1..40), seed: u64, callers in 0u32..80,
        crossing_ms in 0u64..2000,
    ) {
        let hosts = |told: bool| zones.iter().enumerate().map(move |(number, (zone, jobs))| {
            busy(number, if told { *zone } else { 0 }, *jobs)
        }).collect::<Vec<_>>();
        let request = request(Some(key(1)));
        let decide = |cluster: &Cluster| cluster.decide(&request, NOW + seconds(1), &mut rng(seed));
        let (with, without) = (cluster(hosts(true), 0, callers), cluster(hosts(false), 0, callers));
        prop_assert_eq!(decide(&with), decide(&without));

        let cluster = cluster(hosts(true), crossing_ms, callers);
        let made = decide(&cluster);
        let account = cluster.account(&request, &made, NOW + seconds(1), &mut rng(seed));
        for terms in &account.terms {
            let table = cluster.table().unwrap();
            let far = table.is_elsewhere(table.host(terms.host).unwrap());
            prop_assert_eq!(terms.crossing, if far { crossing_ms as f64 * 1e6 } else { 0.0 });
        }
        let (ranked, _) = account.decide().unwrap();
        prop_assert_eq!(made.outcome, weir_policy::Outcome::Send(ranked));
    }
}
