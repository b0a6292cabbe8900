// SPDX-License-Identifier: Apache-2.0
//! A second selection chooses as it would alone, and both choices are judged by what `estimate` knows.

use proptest::prelude::*;
use weir_policy::{Cluster, Has, Keys, Outcome, Policy, Ranked, Request, Selection};

use crate::fleet::{NOW, cache, cluster, host, id, key, request, rng};
use crate::history::{Event, KEYS, World, histories};

fn pair(selection: Selection, beside: Option<Selection>) -> Cluster {
    let policy = Policy {
        selection,
        beside,
        ..Policy::default()
    };
    let mut cluster = cluster(policy, (0..5).map(host).collect());
    let held = (0..3).map(|number| (key(number), vec![(number as usize, false)]));
    cluster.set_cache_shard(0, cache(held.collect()));
    for number in 0..5 {
        cluster.assigned(id(number % 2), &request(Some(key(9))), NOW);
    }
    cluster
}

#[test]
fn the_second_choice_is_the_one_that_its_selection_makes_alone() {
    let asked = [vec![], vec![key(1)], vec![key(2), key(7), key(8)]];
    for live in Selection::ALL {
        for second in Selection::ALL {
            let (both, alone) = (pair(live, Some(second)), pair(second, None));
            for (seed, keys) in (0..).zip(&asked) {
                let request = request(Keys::new(keys.iter().copied()));
                let beside = both.beside(&request, 3, NOW, &mut rng(seed)).unwrap();
                let expected = alone.decide(&request, NOW, &mut rng(seed));
                assert_eq!(
                    (Outcome::Send(beside.ranked), beside.reason),
                    (expected.outcome, expected.reason),
                    "{} beside {}",
                    second.as_str(),
                    live.as_str()
                );
                assert_eq!(beside.first.unwrap().host, beside.ranked.first().unwrap());
                assert_eq!(beside.made.unwrap().host, 3);
            }
        }
    }
}

#[test]
fn both_choices_are_judged_by_where_the_data_are() {
    let cluster = pair(Selection::Random, Some(Selection::Estimate));
    let request = request(Some(key(2)));
    let beside = cluster.beside(&request, 4, NOW, &mut rng(1)).unwrap();
    let (first, made) = (beside.first.unwrap(), beside.made.unwrap());
    assert_eq!((first.host, first.has), (2, Has::Known));
    assert_eq!((made.host, made.has), (4, Has::Lacks(1)));
    assert!(first.finish() < made.finish());
}

#[test]
fn without_a_second_selection_there_is_no_second_choice() {
    let cluster = pair(Selection::Estimate, None);
    let beside = cluster.beside(&request(Some(key(1))), 0, NOW, &mut rng(1));
    assert_eq!(beside, None);
}

fn first(ranked: &Ranked) -> u32 {
    ranked.first().unwrap()
}

proptest! {
    #[test]
    fn a_choice_is_judged_by_the_terms_that_it_was_made_by(
        history in histories(Just(Selection::Estimate)),
        seed: u64,
    ) {
        let mut world = World::new(NOW);
        for (pause, mut event) in history {
            if let Event::Table(_, policy, _) = &mut event {
                policy.beside = Some(policy.selection);
            }
            world.after(pause, event);
            let keys = (0..seed % 4).map(|at| key((seed >> (8 * at)) % KEYS));
            let request = Request { keys: Keys::new(keys), ..request(None) };
            let (cluster, now) = (&world.cluster, world.now);
            let made = cluster.decide(&request, now, &mut rng(seed));
            let Outcome::Send(ranked) = made.outcome else { continue };
            let beside = cluster.beside(&request, first(&ranked), now, &mut rng(seed)).unwrap();
            prop_assert_eq!((beside.ranked, beside.reason), (ranked, made.reason));
            let account = cluster.account(&request, &made, now, &mut rng(seed));
            let looked_at = account.terms.iter().find(|terms| terms.host == first(&ranked));
            if let Some(looked_at) = looked_at {
                prop_assert_eq!(beside.first, Some(*looked_at));
                prop_assert_eq!(beside.made, Some(*looked_at));
            }
        }
    }
}
