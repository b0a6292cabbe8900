// SPDX-License-Identifier: Apache-2.0
//! The account of a decision is enough to make it again.

use std::cell::Cell;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use weir_policy::{Has, Keys, Outcome, Rank, Request, Selection};

use crate::fleet::{NOW, cluster, host, key, request, rng, select};
use crate::history::{KEYS, World, histories};

/// After each event of a history; with 256 histories of 30 events on average that is more than a million that are sent.
const DECISIONS: u64 = 300;

/// Returns how many were made again.
fn again(world: &World, seed: u64) -> Result<u64, TestCaseError> {
    let mut count = 0;
    for number in 0..DECISIONS {
        let seed = seed.wrapping_add(number);
        let keys = (0..number % 4).map(|at| key((seed >> (8 * at)) % KEYS));
        let request = Request {
            keys: Keys::new(keys),
            rank: Rank::from_number((seed % 4096) as u32).unwrap(),
        };
        let (cluster, now) = (&world.cluster, world.now);
        let made = cluster.decide(&request, now, &mut rng(seed));
        let again = cluster
            .account(&request, &made, now, &mut rng(seed))
            .decide();
        match made.outcome {
            Outcome::Send(ranked) => {
                prop_assert_eq!(again, Some((ranked, made.reason)));
                count += 1;
            }
            _ => prop_assert_eq!(again, None, "nothing was compared"),
        }
    }
    Ok(count)
}

#[test]
fn each_of_a_million_decisions_is_made_again_from_its_account() {
    let made = Cell::new(0);
    let histories = histories(Just(Selection::Estimate));
    TestRunner::default()
        .run(&(histories, any::<u64>()), |(history, seed)| {
            let mut world = World::new(NOW);
            for (pause, event) in history {
                world.after(pause, event);
                made.set(made.get() + again(&world, seed)?);
            }
            Ok(())
        })
        .unwrap();
    assert!(made.get() > 1_000_000, "{} were sent", made.get());
}

#[test]
fn an_account_names_what_each_host_was_judged_by() {
    let cluster = cluster(select(Selection::Estimate), vec![host(0), host(1)]);
    let request = request(Some(key(1)));
    let decision = cluster.decide(&request, NOW, &mut rng(1));
    let account = cluster.account(&request, &decision, NOW, &mut rng(1));
    assert!(matches!(decision.outcome, Outcome::Send(_)));
    assert_eq!(account.terms.len(), 2);
    for terms in &account.terms {
        assert_eq!(terms.has, Has::Lacks(1));
        assert!(terms.fetch > 0.0 && terms.run > 0.0 && !terms.avoided);
        assert_eq!(
            terms.finish(),
            terms.wait + (terms.fetch + terms.run) / terms.speed
        );
    }
}

#[test]
fn other_selections_keep_no_account() {
    for selection in Selection::ALL {
        if selection == Selection::Estimate {
            continue;
        }
        let cluster = cluster(select(selection), vec![host(0), host(1)]);
        let request = request(Some(key(1)));
        let decision = cluster.decide(&request, NOW, &mut rng(1));
        let account = cluster.account(&request, &decision, NOW, &mut rng(1));
        assert_eq!(account.decide(), None, "{}", selection.as_str());
    }
}
