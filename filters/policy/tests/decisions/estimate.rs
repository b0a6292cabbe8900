// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use proptest::prelude::*;
use weir_policy::{
    CacheShard, Cluster, Cost, Host, HostId, Keys, Load, Rank, Reason, Request, Selection, Table,
    Work,
};

use crate::fleet::{
    NOW, cache, chosen, host, id, key, millis, named, request, rng, seconds, select,
};

/// A host of four cores that told a moment ago how many are in use, and what waits of class 0 and of class 16.
fn told(number: usize, busy_cores: u32, waits: [u64; 2]) -> Host {
    let mut work = Work::default();
    let queued = u32::from(waits != [0, 0]);
    work.add(0, millis(waits[0]));
    work.add(16, millis(waits[1]));
    Host {
        capacity_millicores: 4000,
        load: Some(Load {
            observed: NOW,
            in_progress: busy_cores + queued,
            queued,
            busy_cores: Some(busy_cores),
            work: Some(work),
            ..Load::default()
        }),
        ..host(number)
    }
}

/// Key 1 is cached at host 0, is fetched in 400 ms and runs for a second; other keys cost what all do: 100 ms
/// and 2 s.
fn cluster(mut hosts: Vec<Host>) -> Cluster {
    hosts.sort_by(|a, b| a.address.cmp(&b.address));
    let mean = Cost {
        fetch: millis(100),
        run: seconds(2),
    };
    let mut cluster = Cluster::default();
    let table = Table::new(select(Selection::Estimate), hosts, 1).unwrap();
    cluster.set_table(table.with_mean_cost(mean), NOW, NOW);
    let shard = CacheShard::new(0, 1, vec![id(0)], vec![key(1).0], vec![1], vec![0]).unwrap();
    cluster.set_cache_shard(0, shard.with_costs(&[400_000], &[1_000_000]).unwrap());
    cluster
}

fn first(cluster: &Cluster, request: &Request) -> (HostId, Reason) {
    let decision = cluster.decide(request, NOW, &mut rng(1));
    (named(cluster, &decision)[0], decision.reason)
}

fn of_class(class: u8) -> Request {
    Request {
        rank: Rank::new(class, 64),
        ..request(Some(key(1)))
    }
}

#[test]
fn a_host_with_the_data_is_taken_unless_waiting_there_costs_more_than_the_fetch() {
    let at = |waits| {
        first(
            &cluster(vec![told(0, 4, [0, waits]), told(1, 0, [0, 0])]),
            &of_class(16),
        )
    };
    // What waits and one more job of 2 s, by four cores: 0.5 s and more, against a fetch of 0.4 s.
    assert_eq!(at(100), (id(1), Reason::NotCached));
    let idle = cluster(vec![told(0, 3, [0, 0]), told(1, 0, [0, 0])]);
    assert_eq!(
        first(&idle, &of_class(16)),
        (id(0), Reason::KnownCached),
        "a core is idle"
    );
}

#[test]
fn where_caches_are_full_a_fetch_counts_for_those_that_follow_and_a_second_copy_for_a_part() {
    // The host with the data, one core for each job there, is busy for 0.5 s and more; a fetch takes 0.4 s.
    let at = |refetched, waits, holders: &[usize]| {
        let mut cluster = cluster(vec![told(0, 4, [0, waits]), told(1, 0, [0, 0])]);
        let hosts: Vec<_> = holders.iter().map(|holder| id(*holder)).collect();
        let (ends, places) = (hosts.len() as u32, 0..hosts.len() as u32);
        let places = places.map(|place| place * 2).collect();
        let shard = CacheShard::new(0, 1, hosts, vec![key(1).0], vec![ends], places).unwrap();
        cluster.set_cache_shard(0, shard.with_costs(&[400_000], &[1_000_000]).unwrap());
        let table = cluster.table().unwrap().clone().with_refetched(refetched);
        cluster.set_table(table, NOW, NOW);
        first(&cluster, &of_class(16)).0
    };
    let (busy, idle) = (id(0), id(1));
    // 0.525 s of wait, against one fetch, two (0.8 s), and 16 (6.4 s).
    assert_eq!(at(0.0, 100, &[0]), idle);
    assert_eq!(at(0.5, 100, &[0]), busy);
    assert_eq!(at(0.5, 1300, &[0]), idle);
    assert_eq!(at(1.0, 20_000, &[0]), busy);
    assert_eq!(at(1.0, 25_000, &[0]), idle, "16 at most");
    // A second copy costs a half of half of two fetches, 0.2 s, and nothing where all is found.
    assert_eq!(at(0.0, 100, &[0, 1]), idle);
    assert_eq!(at(0.5, 100, &[0, 1]), idle);
    assert_eq!(at(0.8, 100, &[0, 1]), busy, "0.8 s");
    assert_eq!(at(0.8, 100, &[1, 0]), idle, "it is the first");
}

/// The same fleet, which caches are too small for.
fn thrashing(mut cluster: Cluster, refetched: f64) -> Cluster {
    let table = cluster.table().unwrap().clone().with_refetched(refetched);
    cluster.set_table(table, NOW, NOW);
    cluster
}

/// All data of the request are at host 1, a part of them at host 0, which is met first.
#[test]
fn where_caches_are_full_a_part_of_the_data_is_no_first_copy_of_them() {
    let idle = (0..3).map(|number| told(number, 0, [0, 0])).collect();
    let mut cluster = cluster(idle);
    let shard = cache(vec![
        (key(1), vec![(0, false), (1, false)]),
        (key(2), vec![(1, false)]),
        (key(3), vec![(0, false), (1, false)]),
    ]);
    cluster.set_cache_shard(0, shard);
    let asked = Request {
        keys: Keys::new([key(1), key(2), key(3)]),
        ..of_class(16)
    };
    let whole = |cluster: &Cluster| {
        let decision = cluster.decide(&asked, NOW, &mut rng(1));
        let account = cluster.account(&asked, &decision, NOW, &mut rng(1));
        let terms = account.terms.iter().find(|terms| terms.host == 1);
        terms.unwrap().fetch
    };
    assert_eq!(whole(&thrashing(cluster, 1.0)), 0.0);
}

#[test]
fn where_caches_are_full_one_copy_of_many_is_the_first_for_every_request_of_many_callers() {
    let hosts = (0..14).map(|number| told(number, 0, [0, 0])).collect();
    let mut cluster = cluster(hosts);
    cluster.set_cache_shard(
        0,
        cache(vec![(key(1), (0..14).map(|host| (host, false)).collect())]),
    );
    let mut cluster = thrashing(cluster, 0.9);
    let table = cluster.table().unwrap().clone().with_callers(64);
    cluster.set_table(table, NOW, NOW);
    for seed in 0..50 {
        let host = chosen(&cluster, Some(key(1)), &mut rng(seed));
        assert_eq!(host, id(0), "{seed}");
    }
}

#[test]
fn where_caches_are_full_no_request_waits_longer_for_a_host_that_lacks_its_data() {
    let idle = |number| told(number, 0, [0, 0]);
    let new = request(Some(key(99)));
    for refetched in [0.0, 0.5, 1.0] {
        let fleet = thrashing(cluster(vec![idle(0), idle(1), idle(2)]), refetched);
        assert_eq!(bounds(&fleet, &new), [millis(0), millis(0)], "{refetched}");
    }
}

#[test]
fn where_caches_are_full_a_host_that_goes_is_avoided_for_no_longer() {
    // A fetch of 0.4 s counts 16 times, and the run takes a second.
    let leaves = |left| Host {
        preempt_at: Some(NOW + left),
        ..told(1, 0, [0, 0])
    };
    let at = |left| {
        let hosts = vec![told(0, 4, [0, 100_000]), leaves(left)];
        first(&thrashing(cluster(hosts), 1.0), &of_class(16)).0
    };
    assert_eq!([at(millis(1300)), at(millis(1500))], [id(0), id(1)]);
}

#[test]
fn where_jobs_wait_everywhere_a_fetch_counts_for_those_too_that_it_delays() {
    // Jobs of 2 s wait at hosts of four cores.
    let waiting = |number, jobs: u32| {
        let mut host = told(number, 4, [0, 2000 * u64::from(jobs)]);
        let load = host.load.as_mut().unwrap();
        (load.queued, load.in_progress) = (jobs, 4 + jobs);
        host
    };
    let beside = |jobs| {
        first(
            &cluster(vec![waiting(0, 20), waiting(1, jobs)]),
            &of_class(16),
        )
    };
    // One second less to wait, a fetch of 0.4 s: but 18 and as many more would wait a tenth of a second longer each.
    assert_eq!(beside(18), (id(0), Reason::KnownCached));
    // Five seconds less, and ten and as many more.
    assert_eq!(beside(10), (id(1), Reason::NotCached));
}

#[test]
fn where_no_host_tells_costs_a_host_with_the_data_is_left_once_each_of_its_cores_has_a_job_waiting()
{
    let with = |queued| Host {
        capacity_millicores: 4000,
        load: Some(Load {
            observed: NOW,
            in_progress: 4 + queued,
            queued,
            ..Load::default()
        }),
        ..host(0)
    };
    let first = |queued| {
        let cluster = cluster(vec![with(queued), told(1, 0, [0, 0])]);
        let table = cluster.table().unwrap().clone();
        let mut untold = Cluster::default();
        untold.set_table(table.with_mean_cost(Cost::default()), NOW, NOW);
        let shard = CacheShard::new(0, 1, vec![id(0)], vec![key(1).0], vec![1], vec![0]);
        untold.set_cache_shard(0, shard.unwrap());
        first(&untold, &of_class(16))
    };
    for queued in 0..=2 {
        assert_eq!(first(queued), (id(0), Reason::KnownCached), "{queued}");
    }
    for queued in [4, 5, 100] {
        assert_eq!(first(queued), (id(1), Reason::NotCached), "{queued}");
    }
}

#[test]
fn what_is_less_important_does_not_count_as_a_wait() {
    let cluster = cluster(vec![told(0, 4, [0, 60_000]), told(1, 4, [4_000, 0])]);
    assert_eq!(first(&cluster, &of_class(0)).0, id(0));
    assert_eq!(first(&cluster, &of_class(16)).0, id(1));
}

#[test]
fn a_key_that_nobody_has_seen_costs_what_all_do() {
    let cluster = cluster(vec![told(0, 0, [0, 0])]);
    let known = Cost {
        fetch: millis(400),
        run: seconds(1),
    };
    assert_eq!(cluster.cost(&key(1).into()), known);
    let mean = cluster.table().unwrap().mean_cost();
    assert_eq!(
        [cluster.cost(&key(2).into()), cluster.cost(&Keys::default())],
        [mean; 2]
    );
}

#[test]
fn a_slow_host_is_left_to_those_that_would_wait_longer_elsewhere() {
    let slow = |speed_permille| Host {
        speed_permille,
        ..told(0, 0, [0, 0])
    };
    let at = |speed| {
        first(
            &cluster(vec![slow(speed), told(1, 0, [0, 0])]),
            &of_class(16),
        )
        .0
    };
    // A second on it takes three; elsewhere the fetch makes it 1.4.
    assert_eq!([at(333), at(900)], [id(1), id(0)]);
}

#[test]
fn a_host_that_will_be_taken_before_the_finish_comes_last() {
    let leaves = |left| Host {
        preempt_at: Some(NOW + left),
        ..told(0, 0, [0, 0])
    };
    let at = |left| {
        first(
            &cluster(vec![leaves(left), told(1, 4, [0, 40_000])]),
            &of_class(16),
        )
        .0
    };
    assert_eq!([at(millis(900)), at(seconds(2))], [id(1), id(0)]);
    let alone = cluster(vec![leaves(Duration::ZERO)]);
    assert_eq!(first(&alone, &of_class(16)).0, id(0), "better than nobody");
}

#[test]
fn many_callers_look_at_two_hosts_each_and_so_do_not_all_take_the_best() {
    let hosts = (0..14).map(|number| told(number, 4, [0, 1000 * number as u64]));
    let mut cluster = cluster(hosts.collect());
    let mut taken = |callers: u32| {
        let table = cluster.table().unwrap().clone().with_callers(callers);
        cluster.set_table(table, NOW, NOW);
        let hosts = (0..200).map(|seed| chosen(&cluster, Some(key(99)), &mut rng(seed)));
        hosts.collect::<std::collections::BTreeSet<_>>().len()
    };
    assert_eq!(
        [taken(0), taken(1), taken(8)],
        [1; 3],
        "the best is the best"
    );
    assert!(taken(64) > 8);
}

#[test]
fn a_host_that_tells_nothing_is_not_taken_for_idle() {
    let silent = host(0);
    let mut cluster = cluster(vec![silent, told(1, 4, [0, 2_000])]);
    let request = request(None);
    assert_eq!(first(&cluster, &request).0, id(0), "nothing was sent there");
    for ms in 1..=3 {
        cluster.assigned(id(0), &request, NOW + millis(ms));
    }
    // Nobody knows its cores: three jobs of 2 s wait for one, against two by four.
    assert_eq!(first(&cluster, &request).0, id(1));
}

proptest! {
    #[test]
    fn whatever_hosts_tell_no_decision_panics(
        waits in prop::collection::vec(0u64..=u64::MAX / 1000, 0..=32), in_progress: u32, queued: u32,
        busy_cores: Option<u32>, millicores in prop_oneof![0u32..3000, any::<u32>()], speed_permille: u32, left in prop::option::of(0u64..1 << 40),
        fetch: u32, run: u32, age in 0u64..5000,
    ) {
        let mut odd = told(0, 0, [0, 0]);
        odd.capacity_millicores = millicores;
        odd.speed_permille = speed_permille;
        odd.preempt_at = left.map(|left| NOW + millis(left));
        odd.load = Some(Load {
            observed: NOW - millis(age),
            in_progress,
            queued,
            busy_cores,
            work: Some(Work::by_class(waits.into_iter().map(Duration::from_millis))),
            ..Load::default()
        });
        let mut cluster = cluster(vec![odd, told(1, 4, [0, 1])]);
        let micros = |micros: u32| Duration::from_micros(micros.into());
        let mean = Cost { fetch: micros(fetch), run: micros(run) };
        let table = cluster.table().unwrap().clone().with_mean_cost(mean);
        cluster.set_table(table, NOW, NOW);
        cluster.assigned(id(0), &of_class(31), NOW + millis(1));
        for class in [0, 16, 31] {
            first(&cluster, &of_class(class));
        }
    }
}

proptest! {
    #[test]
    fn of_hosts_alike_but_for_capacity_the_one_with_more_is_first(
        less in 100u32..16_000, more in 100u32..16_000, wait in 1_000u64..60_000, in_progress in 1u32..40,
        seed: u64,
    ) {
        // Chance decides between waits that are nearly the same.
        prop_assume!(more > less + less / 50);
        let with = |number, capacity_millicores| {
            let mut host = told(number, in_progress, [0, wait]);
            host.capacity_millicores = capacity_millicores;
            host
        };
        let request = request(None);
        for (hosts, best) in [([more, less], 0), ([less, more], 1)] {
            let cluster = cluster(vec![with(0, hosts[0]), with(1, hosts[1])]);
            let decision = cluster.decide(&request, NOW, &mut rng(seed));
            // Where both have a core that is idle nobody waits, and the fuller comes later.
            let both_idle = (in_progress + 1) * 1000 < less;
            if !both_idle {
                prop_assert_eq!(named(&cluster, &decision)[0], id(best));
            }
        }
    }
}

#[test]
fn parts_of_a_core_are_capacity_too() {
    let with = |number, busy, capacity_millicores| Host {
        capacity_millicores,
        ..told(number, busy, [0, 0])
    };
    let first = |a, b| first(&cluster(vec![a, b]), &request(None)).0;
    // Two cores at three quarters of their speed: one of them is idle. One whole core: it is not.
    assert_eq!(first(with(0, 1, 1000), with(1, 1, 1500)), id(1));
    // A core at half its speed is free twice as late.
    assert_eq!(first(with(0, 1, 500), with(1, 1, 1000)), id(1));
    // Nothing runs there, so nobody waits, however slow.
    assert_eq!(first(with(0, 1, 1000), with(1, 0, 1)), id(1));
}

#[test]
fn what_was_sent_since_the_host_told_counts_until_it_has_ended() {
    let mut cluster = cluster(vec![told(0, 0, [0, 0]), told(1, 0, [0, 0])]);
    let request = of_class(16);
    let sent: Vec<_> = (1..=4).map(|ms| NOW + millis(ms)).collect();
    for at in &sent {
        cluster.assigned(id(0), &request, *at);
    }
    assert_eq!(
        first(&cluster, &request).0,
        id(1),
        "all four cores are taken"
    );
    cluster.finished(id(0), sent[1], NOW + millis(5));
    assert_eq!(first(&cluster, &request).0, id(0));
}

#[test]
fn a_job_that_the_host_told_of_counts_no_longer_when_it_has_ended() {
    let mut cluster = cluster(vec![host(0), told(1, 0, [0, 0])]);
    let before = NOW - seconds(1);
    let request = of_class(16);
    cluster.assigned(id(0), &request, before);
    let Some(load) = told(0, 4, [0, 0]).load else {
        panic!()
    };
    let mut full = told(0, 4, [0, 0]);
    full.load = None;
    let table = Table::new(
        select(Selection::Estimate),
        vec![full, told(1, 0, [0, 0])],
        1,
    )
    .unwrap();
    cluster.set_table(
        table.with_mean_cost(Cost {
            fetch: millis(100),
            run: seconds(2),
        }),
        NOW,
        NOW,
    );
    cluster.observed(id(0), load, NOW);
    assert_eq!(first(&cluster, &request).0, id(1));
    cluster.finished(id(0), before, NOW + millis(1));
    assert_eq!(first(&cluster, &request).0, id(0));
}

proptest! {
    #[test]
    fn an_idle_fleet_is_chosen_from_by_chance_and_a_burst_spreads(seed: u64) {
        let mut cluster = cluster((0..14).map(|number| told(number, 0, [0, 0])).collect());
        let mut rng = rng(seed);
        for number in 0..56 {
            let key = Some(key(100 + number));
            let host = chosen(&cluster, key, &mut rng);
            cluster.assigned(host, &request(key), NOW + millis(number + 1));
        }
        for number in 0..14 {
            prop_assert_eq!(cluster.in_flight(id(number)), 4, "host {}", number);
        }
    }
}

/// For how long the request may wait at each host that is named, rounded: scores count in units of 256 µs.
fn bounds(cluster: &Cluster, request: &Request) -> Vec<Duration> {
    let decision = cluster.decide(request, NOW, &mut rng(1));
    let weir_policy::Outcome::Send(ranked) = decision.outcome else {
        panic!("{decision:?}");
    };
    let mut bounds = Vec::new();
    let rounded = |bound: Duration| millis((bound.as_micros() as u64 + 500) / 1000);
    cluster.may_wait(&ranked, request, NOW, |bound| bounds.push(rounded(bound)));
    bounds
}

#[test]
fn a_request_may_wait_at_a_host_until_the_next_would_be_done_with_it_sooner() {
    let idle = |number| told(number, 0, [0, 0]);
    // The first has the data; the next fetches them in 0.4 s; the third as well.
    let fleet = cluster(vec![idle(0), idle(1), idle(2)]);
    assert_eq!(bounds(&fleet, &of_class(16)), [millis(400), millis(0)]);
    // At the next 4 s of work and a job of 2 s wait for four cores, and a fetch delays them and as many more.
    let busy = told(1, 4, [0, 4000]);
    let fleet = cluster(vec![idle(0), busy]);
    assert_eq!(bounds(&fleet, &of_class(16)), [millis(1500 + 400 * 3 / 2)]);
    // Of more important ones nothing waits there.
    assert_eq!(bounds(&fleet, &of_class(0)), [millis(500 + 400 * 3 / 2)]);
}

#[test]
fn the_next_host_has_the_data_too_however_many_others_have_them() {
    // Of 17 holders one is idle, the next waits for half a job of 2 s, and the others are full.
    let waits = |number| match number {
        3 => told(number, 0, [0, 0]),
        16 => told(number, 4, [0, 0]),
        _ => told(number, 4, [0, 60_000]),
    };
    let mut fleet = cluster((0..17).map(waits).collect());
    let all = (0..17).map(|host| (host, false)).collect();
    fleet.set_cache_shard(0, cache(vec![(key(1), all)]));
    assert_eq!(bounds(&fleet, &of_class(16))[0], millis(500));
}

#[test]
fn a_request_may_wait_for_ever_where_no_better_host_is_known() {
    let full = || vec![told(0, 4, [0, 100]), told(1, 4, [0, 100])];
    let alone = cluster(vec![told(0, 4, [0, 100])]);
    assert_eq!(bounds(&alone, &of_class(16)), []);
    let mut taken = full();
    taken[1].preempt_at = Some(NOW + millis(100));
    assert_eq!(bounds(&cluster(taken), &of_class(16)), []);
    let mut failing = cluster(full());
    failing.failed(id(1), &Keys::default(), NOW, NOW);
    assert_eq!(bounds(&failing, &of_class(16)), []);
    let mut other = cluster(full());
    let table = Table::new(select(Selection::Dynamic), full(), 1).unwrap();
    other.set_table(table, NOW, NOW);
    assert_eq!(bounds(&other, &of_class(16)), []);
    let stale = cluster(full());
    let later = NOW + seconds(60);
    let decision = stale.decide(&of_class(16), later, &mut rng(1));
    let weir_policy::Outcome::Send(ranked) = decision.outcome else {
        panic!("{decision:?}");
    };
    stale.may_wait(&ranked, &of_class(16), later, |bound| panic!("{bound:?}"));
}

/// Of hosts that are alike the one that failed is named only if it has to be.
#[test]
fn an_idle_host_that_has_failed_is_not_named_beside_enough_others() {
    let mut cluster = cluster((0..4).map(|number| told(number, 1, [0, 0])).collect());
    cluster.failed(id(2), &Keys::default(), NOW, NOW);
    for seed in 0..64 {
        let decision = cluster.decide(&request(None), NOW, &mut rng(seed));
        let named = named(&cluster, &decision);
        assert_eq!(named.len(), 3);
        assert!(!named.contains(&id(2)), "{named:?}");
    }
}
