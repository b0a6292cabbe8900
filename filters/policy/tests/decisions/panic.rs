// SPDX-License-Identifier: Apache-2.0
//! The floor: where few hosts are left, those that drain are chosen as well, and nobody is told that nobody is there.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use weir_policy::{
    Answer, Cluster, Host, HostState, Keys, Level, Outcome, Overload, Policy, Reason, Selection,
};

use crate::fleet::{NOW, cluster, host, id, key, load, named, request, rng, seconds, select};
use crate::history::selections;

fn in_state(number: usize, state: HostState) -> Host {
    Host {
        state,
        ..host(number)
    }
}

/// Whoever may be named first, of many decisions.
fn named_of(cluster: &Cluster) -> BTreeSet<weir_policy::HostId> {
    let decision = |seed| cluster.decide(&request(key(seed)), NOW, &mut rng(seed));
    (0..200)
        .flat_map(|seed| named(cluster, &decision(seed)))
        .collect()
}

#[test]
fn hosts_that_drain_are_chosen_only_where_fewer_than_the_threshold_are_left() {
    let fleet = |up: usize, draining: usize, threshold| {
        let up = (0..up).map(host);
        let draining = (10..10 + draining).map(|number| in_state(number, HostState::Draining));
        let policy = Policy {
            panic_threshold: threshold,
            ..select(Selection::Random)
        };
        cluster(policy, up.chain(draining).collect())
    };
    for (up, draining, threshold, panics) in [
        (4, 0, 100, false),
        (4, 4, 50, false),
        (3, 4, 50, true),
        (0, 4, 50, true),
        (3, 1, 100, true),
        (1, 4, 0, false),
        (0, 4, 0, true),
    ] {
        let cluster = fleet(up, draining, threshold);
        let named = named_of(&cluster);
        let expected = if panics { up + draining } else { up };
        assert_eq!(named.len(), expected, "{up} {draining} {threshold}");
        let reason = cluster.decide(&request(None), NOW, &mut rng(1)).reason;
        assert_eq!(
            reason == Reason::Panic,
            panics,
            "{up} {draining} {threshold}"
        );
        assert_eq!(cluster.panics(), panics);
    }
}

#[test]
fn failing_and_refusing_hosts_are_not_left_and_come_last_all_the_same() {
    let hosts = || {
        let mut hosts: Vec<_> = (0..5).map(host).collect();
        hosts.push(in_state(5, HostState::Draining));
        hosts
    };
    let mut cluster = cluster(select(Selection::Random), hosts());
    assert!(!cluster.panics());
    // It refuses, two others fail.
    cluster.failed(id(0), &Keys::default(), NOW, NOW);
    for other in [1, 2] {
        for _ in 0..20 {
            cluster.answered(id(3), &Keys::default(), NOW, Answer::Well, NOW);
            cluster.answered(id(other), &Keys::default(), NOW, Answer::Failed, NOW);
        }
    }
    let again = crate::fleet::table(select(Selection::Random), hosts());
    cluster.set_table(again, NOW, NOW);
    assert!(cluster.panics(), "two of six are left");
    for seed in 0..100 {
        let decision = cluster.decide(&request(None), NOW, &mut rng(seed));
        assert_eq!(decision.reason, Reason::Panic);
        let first = named(&cluster, &decision)[0];
        assert!(
            [3, 4, 5].map(id).contains(&first),
            "first is one that fails"
        );
    }
    // When they are well again it is over.
    let later = NOW + seconds(60);
    for other in [0, 1, 2] {
        let mut at = later;
        for _ in 0..4 {
            at += seconds(40);
            cluster.assigned(id(other), &request(None), at);
            cluster.answered(id(other), &Keys::default(), at, Answer::Well, at);
            cluster.finished(id(other), at, at);
        }
    }
    let end = later + seconds(300);
    let again = crate::fleet::table(select(Selection::Random), hosts());
    cluster.set_table(again, end, end);
    assert!(!cluster.panics());
}

#[test]
fn a_host_that_the_most_important_requests_leave_for_a_moment_is_not_left() {
    let table = || {
        let hosts = vec![host(0), host(1), in_state(2, HostState::Draining)];
        crate::fleet::table(select(Selection::Random), hosts)
    };
    let mut cluster = Cluster::default();
    cluster.set_table(table(), NOW, NOW);
    for number in [1, 2] {
        let keys = Keys::from(key(number));
        let is_out = cluster.answered(id(0), &keys, NOW, Answer::Failed, NOW);
        assert!(!is_out, "two are not enough");
    }
    cluster.set_table(table(), NOW, NOW);
    assert!(cluster.panics(), "one of three is left");
    cluster.set_table(table(), NOW, NOW + seconds(1));
    assert!(!cluster.panics());
}

#[test]
fn while_the_proxy_goes_its_own_way_no_level_holds_anybody_back() {
    let policy = Policy {
        overload: Overload::Dagor,
        ..select(Selection::Dynamic)
    };
    let closed = Host {
        level: Level::NONE,
        ..host(1)
    };
    let mut cluster = cluster(policy.clone(), vec![closed.clone()]);
    let sheds = |cluster: &Cluster| {
        let decision = cluster.decide(&request(None), NOW, &mut rng(1));
        matches!(decision.outcome, Outcome::Shed { .. })
    };
    assert!(sheds(&cluster));
    cluster.set_heeded(false, NOW);
    assert!(!sheds(&cluster));
    cluster.set_table(crate::fleet::table(policy, vec![closed]), NOW, NOW);
    assert!(!sheds(&cluster), "nor by the next table");
    cluster.set_heeded(true, NOW);
    assert!(sheds(&cluster));
}

/// Rows of every kind that a source may bring about.
fn rows() -> impl Strategy<Value = Vec<Host>> {
    let state = prop::sample::select(vec![HostState::Up, HostState::Draining, HostState::Down]);
    let level = prop_oneof![Just(0u16), Just(4096), 0u16..=4096].prop_map(Level::admitting);
    let age = prop::option::of((0u64..60, 0u32..300, 0u32..300));
    let capacity = prop_oneof![Just(0u32), Just(1), Just(u32::MAX), 0u32..64_000];
    let speed = prop_oneof![Just(0u32), Just(1), Just(u32::MAX)];
    let preempt = prop::option::of((0u64..2000).prop_map(seconds));
    let row = (state, level, age, capacity, speed, preempt);
    // All alike now and then: everybody drains, is to go, has no capacity, admits nothing.
    let rows = prop_oneof![
        prop::collection::vec(row.clone(), 0..20),
        (row, 0usize..20).prop_map(|(row, count)| vec![row; count]),
    ];
    rows.prop_map(|rows| {
        let host =
            |(number, (state, level, told, capacity_millicores, speed_permille, preempt_at))| {
                let told: Option<(u64, u32, u32)> = told;
                Host {
                    state,
                    level,
                    load: told.map(|(age, jobs, queued)| load(NOW - seconds(age), jobs, queued)),
                    capacity_millicores,
                    speed_permille,
                    preempt_at,
                    ..host(number)
                }
            };
        (0..).zip(rows).map(host).collect()
    })
}

proptest! {
    #[test]
    fn where_a_host_answers_and_admits_the_request_it_is_sent_or_left_to_the_proxy(
        hosts in rows(),
        selection in selections(),
        overload in prop::sample::select(&Overload::ALL),
        panic_threshold in 0u32..=100,
        age in 0u64..20,
        keys in prop::collection::vec(0u64..6, 0..3),
        refused in prop::collection::vec(0usize..20, 0..20),
        seed in any::<u64>(),
    ) {
        let policy = Policy { overload, panic_threshold, ..select(selection) };
        let mut cluster = cluster(policy.clone(), hosts.clone());
        for host in refused {
            cluster.failed(id(host), &Keys::default(), NOW, NOW);
        }
        cluster.set_table(crate::fleet::table(policy, hosts.clone()), NOW, NOW);
        let now = NOW + Duration::from_secs(age);
        let request = request(weir_policy::Keys::new(keys.into_iter().map(key)));
        let decision = cluster.decide(&request, now, &mut rng(seed));
        match decision.outcome {
            Outcome::Send(ranked) => prop_assert!(ranked.first().is_some()),
            Outcome::Fallback => prop_assert!(
                hosts.iter().all(|host| host.state == HostState::Down)
            ),
            Outcome::Shed { .. } => {
                let refuses = |index: u32| {
                    cluster.level(index).is_none_or(|level| !level.admits(request.rank))
                };
                prop_assert!((0..hosts.len() as u32).all(refuses));
                prop_assert!(!cluster.is_stale(now));
            }
            Outcome::Hold { .. } => prop_assert!(false, "nobody asked for that"),
        }
    }
}
