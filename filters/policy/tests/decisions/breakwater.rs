// SPDX-License-Identifier: Apache-2.0
//! Credits of hosts, as a caller spends them. What every history of them leads to is in `history.rs`.

use std::time::Duration;

use proptest::prelude::*;
use weir_policy::{Cluster, Host, Keys, Load, Outcome, Overload, Policy, Request};

use crate::fleet::{NOW, cluster, host, id, load, millis, request, rng, seconds};

fn policy() -> Policy {
    Policy {
        overload: Overload::Breakwater,
        ..Policy::default()
    }
}

/// With two cores each.
fn hosts(hosts: usize) -> Vec<Host> {
    let two_cores = |number| Host {
        capacity_millicores: 2000,
        ..host(number)
    };
    (0..hosts).map(two_cores).collect()
}

fn unkeyed() -> Request {
    request(Keys::default())
}

/// The outcome of a decision, and the host that gets the request where it is sent.
fn send(cluster: &mut Cluster, now: Duration) -> Option<usize> {
    let decision = cluster.decide(&unkeyed(), now, &mut rng(1));
    let Outcome::Send(ranked) = decision.outcome else {
        cluster.refused(now);
        return None;
    };
    let index = ranked.first()?;
    cluster.assigned(cluster.id(index)?, &unkeyed(), now);
    Some(index as usize)
}

/// All cores are in use, and one waits.
fn full(now: Duration) -> Load {
    load(now, 3, 1)
}

#[test]
fn no_more_is_in_flight_at_a_host_than_it_gave_credits_for() {
    let mut cluster = cluster(policy(), hosts(1));
    cluster.observed(id(0), full(NOW), NOW);
    assert_eq!(send(&mut cluster, NOW), Some(0), "credits are not known");
    cluster.credited(id(0), 3, NOW);
    let sent = |cluster: &mut Cluster| (0..5).filter_map(|_| send(cluster, NOW)).count();
    assert_eq!(sent(&mut cluster), 2);
    cluster.finished(id(0), NOW, NOW);
    assert_eq!(sent(&mut cluster), 1);
    cluster.credited(id(0), 5, NOW);
    assert_eq!(sent(&mut cluster), 2);
    // Fewer than are in flight: none until those have ended.
    cluster.credited(id(0), 4, NOW);
    cluster.finished(id(0), NOW, NOW);
    assert_eq!(sent(&mut cluster), 0);
    cluster.finished(id(0), NOW, NOW);
    assert_eq!(sent(&mut cluster), 1);
}

#[test]
fn a_host_without_credits_gets_one_request_by_which_it_can_give_some() {
    let mut cluster = cluster(policy(), hosts(1));
    cluster.observed(id(0), full(NOW), NOW);
    cluster.credited(id(0), 0, NOW);
    assert_eq!(send(&mut cluster, NOW), Some(0));
    assert_eq!(send(&mut cluster, NOW), None);
}

#[test]
fn old_credits_hold_nobody_back() {
    let mut cluster = cluster(policy(), hosts(1));
    cluster.credited(id(0), 1, NOW);
    assert_eq!(send(&mut cluster, NOW), Some(0));
    assert_eq!(send(&mut cluster, NOW), None);
    let later = NOW + seconds(5) + millis(1);
    cluster.observed(id(0), full(later), later);
    assert_eq!(send(&mut cluster, later), Some(0));
}

#[test]
fn a_caller_wants_what_is_in_flight_and_its_part_of_what_nobody_admitted() {
    let mut cluster = cluster(policy(), hosts(2));
    let demand = |cluster: &Cluster, held| cluster.demand(id(0), held, NOW);
    assert_eq!(demand(&cluster, 0), Some(0));
    cluster.assigned(id(0), &unkeyed(), NOW);
    assert_eq!(demand(&cluster, 0), Some(1));
    assert_eq!(demand(&cluster, 3), Some(3), "half of those held");
    (0..4).for_each(|_| cluster.refused(NOW));
    assert_eq!(demand(&cluster, 3), Some(5));
    let none = crate::fleet::cluster(Policy::default(), hosts(2));
    assert_eq!(none.demand(id(0), 0, NOW), None);
}

#[derive(Clone, Debug)]
enum Event {
    Sent,
    Ended(usize),
    /// An answer with credits and perhaps the load.
    Answered(usize, u32, bool),
    Reset,
}

proptest! {
    /// Hosts know at every moment what they have, and none has more than it has cores.
    #[test]
    fn hosts_with_idle_cores_refuse_nothing_for_every_history_of_credits(
        events in prop::collection::vec((0u64..3000, prop_oneof![
            3 => Just(Event::Sent),
            2 => (0usize..3).prop_map(Event::Ended),
            3 => (0usize..3, 0u32..3, any::<bool>()).prop_map(|(host, credits, told)| Event::Answered(host, credits, told)),
            1 => Just(Event::Reset),
        ]), 0..60),
    ) {
        let mut cluster = cluster(policy(), hosts(3));
        let (mut now, mut there) = (NOW, [0u32; 3]);
        for (pause, event) in events {
            now += millis(pause) + Duration::from_micros(1);
            match event {
                // Each has an idle core before it comes.
                Event::Sent if there.iter().all(|jobs| *jobs < 2) => {
                    let host = send(&mut cluster, now);
                    prop_assert!(host.is_some(), "{there:?}");
                    there[host.unwrap()] += 1;
                }
                Event::Sent => {}
                Event::Ended(host) if there[host] > 0 => {
                    there[host] -= 1;
                    cluster.finished(id(host), now, now);
                }
                Event::Ended(_) => {}
                Event::Answered(host, credits, told) => {
                    // Hosts tell their load beside their credits.
                    if told || there[host] > 0 {
                        cluster.observed(id(host), load(now, there[host], 0), now);
                    }
                    cluster.credited(id(host), credits, now);
                }
                Event::Reset => {
                    let table = cluster.table().unwrap().clone();
                    cluster.remove_table();
                    cluster.set_table(table, now, now);
                }
            }
        }
    }
}
