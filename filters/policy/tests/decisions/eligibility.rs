// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use weir_policy::{
    Decision, Host, HostState, KeyHash, Keys, Level, Outcome, Overload, Policy, Rank, Reason,
    Request, Selection,
};

use crate::fleet::{NOW, chosen, cluster, host, id, key, named, rng, select};
use crate::history::{HOSTS, KEYS, World, histories, selections};

/// A fleet is seen through to the end of its history, with a decision after every event.
fn decisions(world: &World, names: &[u64], rank: u32, seed: u64) -> (Request, Decision) {
    let request = Request {
        keys: Keys::new(names.iter().map(|name| key(*name))),
        rank: Rank::from_number(rank).unwrap(),
    };
    let decision = world.cluster.decide(&request, world.now, &mut rng(seed));
    (request, decision)
}

fn check_outcome(
    world: &World,
    request: &Request,
    decision: &Decision,
) -> Result<(), TestCaseError> {
    let Some(table) = &world.table else {
        prop_assert_eq!(decision.outcome, Outcome::Fallback);
        prop_assert_eq!(decision.reason, Reason::NoTable);
        return Ok(());
    };
    let eligible: BTreeSet<_> = world.eligible(request.rank).into_iter().map(id).collect();
    match decision.outcome {
        Outcome::Send(ranked) => {
            let hosts = named(&world.cluster, decision);
            let distinct: BTreeSet<_> = hosts.iter().copied().collect();
            prop_assert!(
                distinct.is_subset(&eligible),
                "only eligible hosts are named"
            );
            prop_assert_eq!(distinct.len(), hosts.len(), "no host is named twice");
            let wanted = table.policy.ranked_hosts.min(eligible.len());
            prop_assert_eq!(
                ranked.as_slice().len(),
                wanted,
                "as many hosts as asked for, or all"
            );
        }
        Outcome::Shed { retry_after } => {
            prop_assert!(!world.is_stale() && world.chosen_from() > 0 && eligible.is_empty());
            prop_assert_eq!(decision.reason, Reason::Overloaded);
            check_retry_after(retry_after, &table.policy)?;
        }
        Outcome::Hold { .. } => prop_assert!(false, "only who may wait is held"),
        Outcome::Fallback => {
            prop_assert!(world.chosen_from() == 0);
            let reason = match world.is_stale() {
                true => Reason::StaleTable,
                false => Reason::NoHost,
            };
            prop_assert_eq!(decision.reason, reason);
            prop_assert!(
                table
                    .hosts
                    .values()
                    .all(|host| host.state == HostState::Down),
                "a host that is up or drains answers"
            );
        }
    }
    // The arms above leave one case: where some host is eligible, the request is sent.
    let sent = matches!(decision.outcome, Outcome::Send(_));
    prop_assert_eq!(sent, !eligible.is_empty());
    prop_assert_eq!(decision.reason == Reason::Panic, sent && world.panics);
    Ok(())
}

fn check_retry_after(retry_after: Duration, policy: &Policy) -> Result<(), TestCaseError> {
    let mean = policy.retry_after;
    prop_assert!((mean / 2..=mean * 3 / 2).contains(&retry_after));
    Ok(())
}

fn check_suspects_come_last(world: &World, decision: &Decision) -> Result<(), TestCaseError> {
    let suspects: BTreeSet<_> = (0..HOSTS)
        .filter(|host| world.is_suspect(*host))
        .map(id)
        .collect();
    let hosts = named(&world.cluster, decision);
    prop_assert!(hosts.is_sorted_by_key(|host| suspects.contains(host)));
    Ok(())
}

proptest! {
    #[test]
    fn a_request_is_sent_to_eligible_hosts_wherever_there_are_any(
        history in histories(selections()),
        request in (prop::collection::vec(0..KEYS, 0..4), 0u32..4096),
        seed in any::<u64>(),
    ) {
        let mut world = World::new(NOW);
        for (pause, event) in history {
            world.after(pause, event);
            let (request, decision) = decisions(&world, &request.0, request.1, seed);
            check_outcome(&world, &request, &decision)?;
            check_suspects_come_last(&world, &decision)?;
        }
    }

    #[test]
    fn levels_and_jobs_in_progress_are_what_a_recount_gives(history in histories(selections())) {
        let mut world = World::new(NOW);
        for (pause, event) in history {
            world.after(pause, event);
            prop_assert_eq!(world.cluster.is_stale(world.now), world.is_stale());
            for host in 0..HOSTS {
                prop_assert_eq!(world.cluster.in_flight(id(host)), world.in_flight(host));
                let index = world.cluster.table().and_then(|table| table.index_of(id(host)));
                if let Some(index) = index {
                    prop_assert_eq!(world.cluster.level(index), world.level(host));
                    let in_progress = world.cluster.in_progress(index, world.now);
                    prop_assert_eq!(in_progress, Some(world.in_progress(host)), "host {}", host);
                }
            }
        }
    }

    #[test]
    fn selections_by_key_draw_no_lots(
        history in histories(prop::sample::select(vec![Selection::Baseline, Selection::Rendezvous])),
        request in (prop::collection::vec(0..KEYS, 1..4), 0u32..4096),
        seeds in any::<(u64, u64)>(),
    ) {
        let mut world = World::new(NOW);
        for (pause, event) in history {
            world.after(pause, event);
            let (_, one) = decisions(&world, &request.0, request.1, seeds.0);
            let (_, other) = decisions(&world, &request.0, request.1, seeds.1);
            if matches!(one.outcome, Outcome::Send(_)) {
                prop_assert_eq!(one, other);
            }
        }
    }

    #[test]
    fn a_key_less_request_is_sent_as_any_other(
        history in histories(selections()), rank in 0u32..4096, seed in any::<u64>(),
    ) {
        let mut world = World::new(NOW);
        for (pause, event) in history {
            world.after(pause, event);
            let (_, decision) = decisions(&world, &[], rank, seed);
            if matches!(decision.outcome, Outcome::Send(_)) && !world.panics {
                prop_assert_eq!(decision.reason, Reason::NoKey);
            }
        }
    }
}

#[test]
fn a_host_that_refuses_does_not_stand_in_for_one_that_failed() {
    for selection in Selection::ALL {
        let policy = Policy {
            overload: Overload::Dagor,
            ..select(selection)
        };
        let refusing = Host {
            level: Level::NONE,
            ..host(1)
        };
        let mut cluster = cluster(policy, vec![host(0), refusing]);
        cluster.failed(id(0), &Keys::default(), NOW, NOW);
        assert_eq!(
            chosen(&cluster, key(1), &mut rng(1)),
            id(0),
            "{selection:?}"
        );
    }
}

#[test]
fn selections_by_key_go_by_the_second_of_several_keys() {
    for selection in [Selection::Baseline, Selection::Rendezvous] {
        let cluster = cluster(select(selection), (0..14).map(host).collect());
        for number in 0..50 {
            let alone = chosen(&cluster, key(number), &mut rng(1));
            let listed = Keys::new([1000, number, 2000 + number].map(key));
            assert_eq!(chosen(&cluster, listed, &mut rng(1)), alone);
        }
    }
}

#[test]
fn two_names_of_one_hash_would_be_one_key() {
    assert_eq!(KeyHash::of(b"a"), KeyHash::of(b"a"));
    assert_ne!(KeyHash::of(b"a"), KeyHash::of(b"b"));
}
