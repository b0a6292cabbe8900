// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;

use proptest::prelude::*;
use weir_policy::{Keys, Outcome, Rank, Reason, Request, Selection};

use crate::fleet::{
    NOW, cache, chosen, cluster, host, id, key, load, named, request, rng, seconds, select,
};
use crate::history::{HOSTS, KEYS, World, histories};

proptest! {
    /// Document 001, section 9.2.3: order all eligible hosts by cache status, then by jobs in progress. Of
    /// several keys the status is how many a host has, from the first on, if more than half of them.
    #[test]
    fn dynamic_names_the_hosts_that_sorting_all_of_them_would(
        history in histories(Just(Selection::Dynamic)),
        names in prop::collection::vec(0..KEYS, 0..5),
        rank in 0u32..4096,
        seed in any::<u64>(),
    ) {
        let mut world = World::new(NOW);
        let rank = Rank::from_number(rank).unwrap();
        for (pause, event) in history {
            world.after(pause, event);
            let keys = Keys::new(names.iter().map(|name| key(*name)));
            let decision = world.cluster.decide(&Request { keys, rank }, world.now, &mut rng(seed));
            let Outcome::Send(ranked) = decision.outcome else { continue };
            let score = |host: usize| {
                let (held, assumed) = match world.prefix(host, &names) {
                    (held, assumed) if 2 * held > names.len() => (held, assumed),
                    _ => (0, false),
                };
                (world.is_suspect(host), names.len() - held, assumed, world.in_progress(host))
            };
            let mut expected: Vec<_> = world.eligible(rank).into_iter().map(score).collect();
            expected.sort_unstable();
            expected.truncate(ranked.as_slice().len());
            let number = |found| (0..HOSTS).find(|host| id(*host) == found).unwrap();
            let found: Vec<_> = named(&world.cluster, &decision).into_iter().map(|host| score(number(host))).collect();
            prop_assert_eq!(&found, &expected);
            let reason = match found[0] {
                _ if world.panics => Reason::Panic,
                _ if names.is_empty() => Reason::NoKey,
                (_, lacking, ..) if lacking == names.len() => Reason::NotCached,
                (_, _, true, _) => Reason::AssumedCached,
                _ => Reason::KnownCached,
            };
            prop_assert_eq!(decision.reason, reason);
        }
    }
}

#[test]
fn a_known_holder_comes_before_an_assumed_one_and_that_before_the_idle() {
    let mut hosts: Vec<_> = (0..14).map(host).collect();
    hosts[4].load = Some(load(NOW, 90, 0));
    hosts[9].load = Some(load(NOW, 50, 0));
    let mut cluster = cluster(select(Selection::Dynamic), hosts);
    cluster.set_cache_shard(0, cache(vec![(key(1), vec![(4, false), (9, true)])]));
    let first = |host: usize| {
        named(
            &cluster,
            &cluster.decide(&request(Some(key(1))), NOW, &mut rng(1)),
        )[host]
    };
    assert_eq!(first(0), id(4));
    assert_eq!(first(1), id(9));
}

#[test]
fn of_several_keys_the_longest_beginning_counts_and_a_gap_ends_it() {
    let mut hosts: Vec<_> = (0..14).map(host).collect();
    for busy in [2, 3] {
        hosts[busy].load = Some(load(NOW, 90, 0));
    }
    let mut cluster = cluster(select(Selection::Dynamic), hosts);
    let held = vec![
        (key(1), vec![(1, false), (2, false), (3, true)]),
        (key(2), vec![(2, false), (3, false), (4, false)]),
        (key(3), vec![(4, false), (1, false)]),
    ];
    cluster.set_cache_shard(0, cache(held));
    let asked = crate::fleet::request(Keys::new([1, 2, 3].map(key)));
    let decision = cluster.decide(&asked, NOW, &mut rng(1));
    assert_eq!(named(&cluster, &decision)[..2], [id(2), id(3)]);
    assert_eq!(decision.reason, Reason::KnownCached);
    cluster.assigned(id(9), &asked, NOW);
    let decision = cluster.decide(&asked, NOW, &mut rng(1));
    assert_eq!(named(&cluster, &decision), [id(9), id(2), id(3)]);
    assert_eq!(decision.reason, Reason::AssumedCached);
}

#[test]
fn a_beginning_that_all_requests_share_does_not_bring_them_all_to_one_host() {
    let mut cluster = cluster(select(Selection::Dynamic), (0..14).map(host).collect());
    for number in 0..140 {
        let own = [1000 + number, 2000 + number];
        let keys = Keys::new([1, own[0], own[1]].map(key));
        let host = chosen(&cluster, keys.clone(), &mut rng(number));
        cluster.assigned(host, &request(keys), NOW);
    }
    for number in 0..14 {
        assert_eq!(cluster.in_flight(id(number)), 10);
    }
}

#[test]
fn in_a_large_fleet_the_one_holder_of_the_end_is_found_behind_a_beginning_that_all_hold() {
    let mut cluster = cluster(select(Selection::Dynamic), (0..1000).map(host).collect());
    let all = (0..1000).map(|host| (host, false)).collect();
    cluster.set_cache_shard(0, cache(vec![(key(1), all), (key(2), vec![(700, false)])]));
    for seed in 0..50 {
        let keys = Keys::new([1, 2, 3].map(key));
        assert_eq!(chosen(&cluster, keys, &mut rng(seed)), id(700));
    }
}

#[test]
fn hosts_that_are_alike_take_turns_by_chance() {
    let cluster = cluster(select(Selection::Dynamic), (0..14).map(host).collect());
    let mut rng = rng(3);
    let taken: BTreeSet<_> = (0..200)
        .map(|_| chosen(&cluster, Some(key(1)), &mut rng))
        .collect();
    assert_eq!(
        taken.len(),
        14,
        "every idle host is the first choice of some caller"
    );
}

#[test]
fn what_was_sent_a_moment_ago_is_added_so_that_a_burst_spreads() {
    let mut cluster = cluster(select(Selection::Dynamic), (0..14).map(host).collect());
    let mut rng = rng(4);
    for number in 0..140 {
        let host = chosen(&cluster, Some(key(number)), &mut rng);
        cluster.assigned(host, &request(Some(key(number))), NOW);
    }
    for number in 0..14 {
        assert_eq!(cluster.in_flight(id(number)), 10);
    }
}

#[test]
fn a_large_fleet_is_sampled_and_its_loaded_hosts_are_rarely_taken() {
    // Half of 1,000 hosts are loaded: 16 draws miss the other half once in 65,536.
    let hosts = (0..1000).map(|number| {
        let mut host = host(number);
        host.load = Some(load(NOW, if number % 2 == 0 { 10 } else { 0 }, 0));
        host
    });
    let cluster = cluster(select(Selection::Dynamic), hosts.collect());
    let mut rng = rng(5);
    let loaded: BTreeSet<_> = (0..1000).step_by(2).map(id).collect();
    let taken = (0..5000)
        .filter(|_| loaded.contains(&chosen(&cluster, None, &mut rng)))
        .count();
    assert!(taken < 5, "{taken} of 5,000");
}

#[test]
fn a_key_stops_being_assumed_cached_when_its_time_is_over() {
    let mut cluster = cluster(select(Selection::Dynamic), (0..14).map(host).collect());
    cluster.assigned(id(3), &request(Some(key(1))), NOW);
    cluster.finished(id(3), NOW, NOW);
    let reason = |later| {
        let decision = cluster.decide(&request(Some(key(1))), NOW + later, &mut rng(6));
        decision.reason
    };
    assert_eq!(reason(seconds(10)), Reason::AssumedCached);
    assert_eq!(reason(seconds(11)), Reason::NotCached);
}
