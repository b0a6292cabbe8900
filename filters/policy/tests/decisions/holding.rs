// SPDX-License-Identifier: Apache-2.0
//! Who waits for a host, for how long, and who goes first.

use std::time::Duration;

use proptest::prelude::*;
use weir_policy::{
    Answer, Cluster, Decision, Holding, Host, Keys, Level, Outcome, Overload, Patience, Policy,
    Rank, Reason, Request, Round, WaitQueue,
};

use crate::fleet::{NOW, cache, cluster, host, id, key, load, millis, rng, table};

fn policy(for_eligible: u64, for_cached: u64, max_held: usize) -> Policy {
    Policy {
        overload: Overload::Dagor,
        holding: Holding {
            for_eligible: millis(for_eligible),
            for_cached: millis(for_cached),
            max_held,
        },
        ..Policy::default()
    }
}

fn admitting(number: usize, ranks: u16) -> Host {
    Host {
        level: Level::admitting(ranks),
        ..host(number)
    }
}

fn request(rank: u32) -> Request {
    Request {
        keys: Keys::default(),
        rank: Rank::from_number(rank).unwrap(),
    }
}

fn came(at: Duration) -> Patience {
    Patience::new(at)
}

fn held_for(decision: &Decision) -> Option<(Reason, Duration)> {
    match decision.outcome {
        Outcome::Hold { until } => Some((decision.reason, until - NOW)),
        _ => None,
    }
}

#[test]
fn a_request_that_nobody_admits_waits_until_its_time_or_its_deadline_and_is_shed_then() {
    let cluster = cluster(policy(500, 0, 10), vec![admitting(0, 100)]);
    let decide = |patience: Patience, now: Duration| {
        cluster.decide_or_hold(&request(200), patience, now, &mut rng(0))
    };
    let decision = decide(came(NOW), NOW);
    assert_eq!(
        held_for(&decision),
        Some((Reason::HeldForEligible, millis(500)))
    );
    let hurried = Patience {
        came: NOW,
        deadline: Some(NOW + millis(80)),
    };
    assert_eq!(
        held_for(&decide(hurried, NOW)),
        Some((Reason::HeldForEligible, millis(80)))
    );
    for (patience, late) in [(came(NOW), 500), (hurried, 80)] {
        let decision = decide(patience, NOW + millis(late));
        assert!(matches!(decision.outcome, Outcome::Shed { .. }), "{late}");
        assert_eq!(decision.reason, Reason::Overloaded);
    }
    let important = cluster.decide_or_hold(&request(99), came(NOW), NOW, &mut rng(0));
    assert!(matches!(important.outcome, Outcome::Send(_)));
}

#[test]
fn without_holding_nobody_waits() {
    let cluster = cluster(policy(0, 0, 10), vec![admitting(0, 0)]);
    let decision = cluster.decide_or_hold(&request(0), came(NOW), NOW, &mut rng(0));
    assert!(matches!(decision.outcome, Outcome::Shed { .. }));
}

#[test]
fn a_request_waits_for_the_key_only_where_all_who_said_that_they_have_it_refuse_it() {
    let wanted = Request {
        keys: key(1).into(),
        rank: Rank::from_number(200).unwrap(),
    };
    let decide = |holders: Vec<(usize, bool)>, wait: u64| {
        let hosts = vec![admitting(0, 100), admitting(1, 100), admitting(2, 4096)];
        let mut cluster = cluster(policy(0, wait, 10), hosts);
        cluster.set_cache_shard(0, cache(vec![(key(1), holders)]));
        cluster.decide_or_hold(&wanted, came(NOW), NOW, &mut rng(0))
    };
    let held = Some((Reason::HeldForCached, millis(50)));
    assert_eq!(held_for(&decide(vec![(0, false)], 50)), held);
    assert_eq!(held_for(&decide(vec![(0, false), (1, false)], 50)), held);
    for (holders, wait, reason) in [
        (vec![(0, false)], 0, Reason::NotCached),
        (vec![(0, true)], 50, Reason::NotCached),
        (vec![], 50, Reason::NotCached),
        (vec![(9, false)], 50, Reason::NotCached),
        (vec![(0, false), (2, false)], 50, Reason::KnownCached),
    ] {
        let decision = decide(holders.clone(), wait);
        assert!(
            matches!(decision.outcome, Outcome::Send(_)),
            "{holders:?} {wait}"
        );
        assert_eq!(decision.reason, reason, "{holders:?} {wait}");
    }
}

#[test]
fn by_a_stale_table_nobody_waits_for_a_key_and_nobody_for_others() {
    let hosts = vec![admitting(0, 100), admitting(2, 4096)];
    let mut stale = cluster(policy(0, 50, 10), hosts);
    stale.set_cache_shard(0, cache(vec![(key(1), vec![(0, false)])]));
    let wanted = Request {
        keys: key(1).into(),
        rank: Rank::from_number(200).unwrap(),
    };
    let later = NOW + Duration::from_secs(60);
    for (now, waits) in [(NOW, true), (later, false)] {
        let decision = stale.decide_or_hold(&wanted, came(now), now, &mut rng(0));
        assert_eq!(matches!(decision.outcome, Outcome::Hold { .. }), waits);
    }
    let closed = cluster(policy(500, 0, 1), vec![admitting(0, 0)]);
    let mut held = WaitQueue::default();
    assert!(hold(&mut held, &closed, 0, 100, NOW));
    let asked = request(200);
    let decision = held.decide(&closed, &asked, came(later), later, &mut rng(0));
    assert!(matches!(decision.outcome, Outcome::Send(_)), "{decision:?}");
}

/// Ranks in the order in which one round lets them go.
fn round(held: &mut WaitQueue<u32>, cluster: &Cluster, now: Duration) -> Vec<(u32, Decision)> {
    let (mut round, mut rng) = (Round::default(), rng(1));
    let next = || held.next(cluster, &mut round, now, &mut rng);
    std::iter::from_fn(next)
        .map(|(number, _, decision)| (number, decision))
        .collect()
}

fn hold(
    held: &mut WaitQueue<u32>,
    cluster: &Cluster,
    number: u32,
    rank: u32,
    now: Duration,
) -> bool {
    let decision = held.decide(cluster, &request(rank), came(now), now, &mut rng(2));
    let Outcome::Hold { until } = decision.outcome else {
        return false;
    };
    let why = (until, decision.reason);
    held.hold(cluster, request(rank), came(now), why, number);
    true
}

#[test]
fn hosts_that_open_get_one_each_and_one_for_each_answer_by_rank_then_by_arrival() {
    let closed = cluster(policy(500, 0, 10), vec![admitting(0, 0), admitting(1, 0)]);
    let mut held = WaitQueue::default();
    for (number, rank) in [(0, 300), (1, 100), (2, 300), (3, 100), (4, 200)] {
        assert!(hold(&mut held, &closed, number, rank, NOW));
    }
    let open = cluster(
        policy(500, 0, 10),
        vec![admitting(0, 4096), admitting(1, 4096)],
    );
    let numbers = |gone: Vec<(u32, Decision)>| gone.iter().map(|(number, _)| *number).collect();
    let first: Vec<u32> = numbers(round(&mut held, &open, NOW));
    assert_eq!(first, [1, 3]);
    held.answered();
    let second: Vec<u32> = numbers(round(&mut held, &open, NOW));
    assert_eq!(second, [4, 0, 2]);
}

#[test]
fn nobody_overtakes_those_who_are_more_important_and_wait_for_any_host() {
    let closed = cluster(policy(500, 0, 10), vec![admitting(0, 0)]);
    let open = cluster(policy(500, 0, 10), vec![admitting(0, 4096)]);
    let mut held = WaitQueue::default();
    assert!(hold(&mut held, &closed, 0, 200, NOW));
    assert!(hold(&mut held, &open, 1, 200, NOW), "as important");
    assert!(!hold(&mut held, &open, 2, 199, NOW), "more important");
}

#[test]
fn of_a_full_queue_the_least_important_gives_its_place_to_who_is_more_important() {
    let closed = cluster(policy(500, 0, 2), vec![admitting(0, 0)]);
    let mut held = WaitQueue::default();
    assert!(hold(&mut held, &closed, 0, 300, NOW));
    assert!(hold(&mut held, &closed, 1, 200, NOW));
    assert!(!hold(&mut held, &closed, 2, 300, NOW), "as important");
    assert!(hold(&mut held, &closed, 3, 100, NOW));
    assert_eq!(held.len(), 2);
    let gone = round(&mut held, &closed, NOW + millis(1));
    let numbers: Vec<u32> = gone.iter().map(|(number, _)| *number).collect();
    assert_eq!(numbers, [0]);
    assert!(matches!(gone[0].1.outcome, Outcome::Shed { .. }));
    // Nor is a full queue overtaken.
    let open = cluster(policy(500, 0, 2), vec![admitting(0, 4096)]);
    let late = held.decide(&open, &request(300), came(NOW), NOW, &mut rng(0));
    let Outcome::Shed { retry_after } = late.outcome else {
        panic!("{late:?}");
    };
    let mean = Policy::default().retry_after;
    assert!(mean / 2 <= retry_after && retry_after <= mean * 3 / 2);
    let first = held.decide(&open, &request(50), came(NOW), NOW, &mut rng(0));
    assert!(matches!(first.outcome, Outcome::Send(_)), "{first:?}");
}

#[test]
fn who_gives_its_place_can_go_too_and_no_more_do_than_may_wait() {
    let closed = cluster(policy(500, 0, 1), vec![admitting(0, 0)]);
    let mut held = WaitQueue::default();
    let until = (NOW + millis(500), Reason::HeldForEligible);
    let ticket = held.hold(&closed, request(300), came(NOW), until, 0);
    assert!(hold(&mut held, &closed, 1, 200, NOW));
    assert!(
        !hold(&mut held, &closed, 2, 100, NOW),
        "one has gone before"
    );
    assert_eq!(held.remove(ticket), Some(0));
    assert!(hold(&mut held, &closed, 3, 100, NOW));
    assert!(!held.is_empty());
    assert_eq!(round(&mut held, &closed, NOW).len(), 1);
    assert_eq!(held.len(), 1);
}

#[test]
fn who_has_gone_is_not_decided_any_more() {
    let closed = cluster(policy(500, 0, 10), vec![admitting(0, 0)]);
    let mut held = WaitQueue::default();
    let until = (NOW + millis(500), Reason::HeldForEligible);
    let ticket = held.hold(&closed, request(1), came(NOW), until, 7);
    assert_eq!(held.remove(ticket), Some(7));
    assert_eq!(held.remove(ticket), None);
    assert!(round(&mut held, &closed, NOW + millis(900)).is_empty());
}

#[derive(Clone, Debug)]
enum Event {
    Comes(u32, Option<u64>),
    Gone(usize),
    Levels(u16, u16),
    Round,
}

fn events() -> impl Strategy<Value = Vec<(u64, Event)>> {
    let level = || prop_oneof![Just(0u16), Just(4096), 0u16..4096];
    // Of some the body is not here in whole: they may not wait at all.
    let within = || prop_oneof![1 => Just(0u64), 3 => 0u64..400];
    let event = prop_oneof![
        6 => (0u32..4096, prop::option::of(within())).prop_map(|(rank, within)| Event::Comes(rank, within)),
        1 => (0usize..8).prop_map(Event::Gone),
        2 => (level(), level()).prop_map(|(a, b)| Event::Levels(a, b)),
        3 => Just(Event::Round),
    ];
    prop::collection::vec((0u64..120, event), 1..80)
}

proptest! {
    /// Whatever comes, leaves and opens: never more wait than may, nobody who waits is left past its time by a
    /// round, who is sent, in turn or at once, is the most important of those who wait for any host, only the least
    /// important is displaced or turned away, and nobody gets lost.
    #[test]
    fn the_laws_of_holding(events in events(), max_held in 1usize..6, wait in 1u64..300) {
        let policy = policy(wait, 0, max_held);
        let mut cluster = cluster(policy.clone(), vec![admitting(0, 0), admitting(1, 0)]);
        let mut held = WaitQueue::default();
        let mut waiting: Vec<(u32, weir_policy::Ticket, u32, Duration)> = Vec::new();
        let mut displaced = Vec::new();
        let (mut now, mut number) = (NOW, 0);
        for (pause, event) in events {
            now += millis(pause);
            match event {
                Event::Comes(rank, within) => {
                    let patience = Patience { came: now, deadline: within.map(|within| now + millis(within)) };
                    let asked = request(rank);
                    let decision = held.decide(&cluster, &asked, patience, now, &mut rng(number.into()));
                    if let Outcome::Hold { until } = decision.outcome {
                        prop_assert!(until > now && until <= now + millis(wait));
                        prop_assert!(patience.deadline.is_none_or(|deadline| until <= deadline));
                        if waiting.len() == max_held {
                            let last = (0..max_held).max_by_key(|place| waiting[*place].1).unwrap();
                            prop_assert!(waiting[last].2 > rank);
                            displaced.push(waiting.swap_remove(last));
                        }
                        let why = (until, decision.reason);
                        let ticket = held.hold(&cluster, asked, patience, why, number);
                        waiting.push((number, ticket, rank, until));
                    } else {
                        let is_behind = waiting.iter().any(|(_, _, other, _)| *other <= rank);
                        let is_sent = matches!(decision.outcome, Outcome::Send(_));
                        prop_assert!(!(is_sent && is_behind), "{rank} overtakes");
                        let is_last = waiting.iter().all(|(_, _, other, _)| *other <= rank);
                        let is_full = waiting.len() == max_held && (is_last || displaced.len() == max_held);
                        let may_wait = within != Some(0);
                        prop_assert!(is_sent || is_full || !may_wait, "{rank} is turned away");
                    }
                    number += 1;
                }
                Event::Gone(which) if which < waiting.len() => {
                    let (number, ticket, ..) = waiting.swap_remove(which);
                    prop_assert_eq!(held.remove(ticket), Some(number));
                }
                Event::Gone(_) => {
                    if let Some((number, ticket, ..)) = displaced.pop() {
                        prop_assert_eq!(held.remove(ticket), Some(number));
                    }
                }
                Event::Levels(a, b) => {
                    let hosts = vec![admitting(0, a), admitting(1, b)];
                    cluster.set_table(table(policy.clone(), hosts), now, now);
                }
                Event::Round => {
                    for (gone, decision) in round(&mut held, &cluster, now) {
                        let Some(place) = waiting.iter().position(|(number, ..)| *number == gone) else {
                            let place = displaced.iter().position(|(number, ..)| *number == gone).unwrap();
                            let (_, _, rank, _) = displaced.swap_remove(place);
                            let is_behind = waiting.iter().any(|(_, _, other, _)| *other <= rank);
                            let is_sent = matches!(decision.outcome, Outcome::Send(_));
                            prop_assert!(!(is_sent && is_behind), "{rank} overtakes");
                            continue;
                        };
                        let (_, ticket, rank, until) = waiting.remove(place);
                        let is_sent = matches!(decision.outcome, Outcome::Send(_));
                        let is_first = waiting.iter().all(|(_, other, ..)| *other > ticket);
                        prop_assert!(until <= now || is_sent && is_first, "{:?} of rank {}", decision, rank);
                    }
                    prop_assert!(waiting.iter().all(|(.., until)| *until > now));
                    prop_assert!(displaced.is_empty());
                }
            }
            prop_assert_eq!(held.len(), waiting.len());
            prop_assert!(held.len() <= max_held);
        }
    }
}

#[test]
fn where_the_policy_stops_holding_all_are_decided_in_one_round() {
    let closed = cluster(policy(500, 0, 10), vec![admitting(0, 0)]);
    let mut held = WaitQueue::default();
    for number in 0..5 {
        assert!(hold(&mut held, &closed, number, 100, NOW));
    }
    let mut off = closed;
    let mut row = admitting(0, 0);
    row.load = Some(load(NOW, 1, 0));
    off.set_table(table(policy(0, 0, 10), vec![row]), NOW, NOW);
    assert_eq!(off.id(0), Some(id(0)));
    let gone = round(&mut held, &off, NOW + millis(1));
    assert_eq!(gone.len(), 5);
    assert!(
        gone.iter()
            .all(|(_, decision)| decision.reason == Reason::Overloaded)
    );
}

#[test]
fn nobody_waits_for_a_host_that_has_the_key_and_fails() {
    let hosts = vec![admitting(0, 100), admitting(1, 4096)];
    let mut cluster = cluster(policy(0, 500, 10), hosts);
    cluster.set_cache_shard(0, cache(vec![(key(1), vec![(0, false)])]));
    let request = Request {
        keys: key(1).into(),
        ..request(200)
    };
    let reason = |cluster: &Cluster| {
        let decision = cluster.decide_or_hold(&request, came(NOW), NOW, &mut rng(0));
        decision.reason
    };
    assert_eq!(reason(&cluster), Reason::HeldForCached);
    for _ in 0..5 {
        cluster.answered(id(0), &Keys::default(), NOW, Answer::Failed, NOW);
    }
    assert_eq!(reason(&cluster), Reason::NotCached);
}
