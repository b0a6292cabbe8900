// SPDX-License-Identifier: Apache-2.0
use std::collections::BTreeSet;

use proptest::prelude::*;
use weir_policy::{Outcome, Rank, Reason, Request, Selection};

use crate::fleet::{NOW, cache, chosen, cluster, host, id, key, load, named, request, rng, select};
use crate::history::{HOSTS, KEYS, World, histories};

proptest! {
    #[test]
    fn the_planned_hosts_come_by_jobs_in_progress_before_any_others(
        history in histories(Just(Selection::CachingPlan)),
        name in 0..KEYS,
        rank in 0u32..4096,
        seed in any::<u64>(),
    ) {
        let mut world = World::new(NOW);
        let rank = Rank::from_number(rank).unwrap();
        for (pause, event) in history {
            world.after(pause, event);
            let asked = Request { keys: key(name).into(), rank };
            let decision = world.cluster.decide(&asked, world.now, &mut rng(seed));
            let Outcome::Send(ranked) = decision.outcome else { continue };
            let is_planned = |host: usize| world.status(host, name) == 0 && !world.is_suspect(host);
            let mut expected: Vec<_> = world
                .eligible(rank)
                .into_iter()
                .filter(|host| is_planned(*host))
                .map(|host| world.in_progress(host))
                .collect();
            expected.sort_unstable();
            expected.truncate(ranked.as_slice().len());
            let number = |found| (0..HOSTS).find(|host| id(*host) == found).unwrap();
            let hosts: Vec<_> = named(&world.cluster, &decision).into_iter().map(number).collect();
            let found: Vec<_> = hosts[..expected.len()].iter().map(|host| world.in_progress(*host)).collect();
            prop_assert_eq!(&found, &expected);
            prop_assert!(hosts.iter().map(|host| is_planned(*host)).is_sorted_by(|a, b| a >= b));
            let reason = match expected.is_empty() {
                _ if world.panics => Reason::Panic,
                true => Reason::Random,
                false => Reason::Planned,
            };
            prop_assert_eq!(decision.reason, reason);
        }
    }
}

#[test]
fn a_key_without_a_plan_goes_anywhere_and_equals_take_turns() {
    let mut hosts: Vec<_> = (0..14).map(host).collect();
    hosts[4].load = Some(load(NOW, 90, 0));
    let mut cluster = cluster(select(Selection::CachingPlan), hosts);
    let plan = vec![
        (key(1), vec![(4, false)]),
        (key(2), vec![(5, false), (6, false)]),
    ];
    cluster.set_cache_shard(0, cache(plan));
    let mut rng = rng(3);
    let mut taken = |name| -> BTreeSet<_> {
        (0..300)
            .map(|_| chosen(&cluster, Some(key(name)), &mut rng))
            .collect()
    };
    assert_eq!(taken(1), BTreeSet::from([id(4)]), "however loaded");
    assert_eq!(taken(2), BTreeSet::from([id(5), id(6)]));
    assert_eq!(taken(3).len(), 14);
    let reason = cluster.decide(&request(Some(key(3))), NOW, &mut rng).reason;
    assert_eq!(reason, Reason::Random);
}
