// SPDX-License-Identifier: Apache-2.0
//! Which caller sends what.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weir_sim::workload::{Job, LOW, Work};
use weir_sim::{Ended, Scenario};

use crate::{SECOND, play, scenario};

fn job(at: Duration, run: Duration, sender: Option<u64>) -> Job {
    Job {
        at,
        key: None,
        version: 0,
        class: LOW,
        user: None,
        sender,
        bytes: 0,
        work: Work::Whole(run),
        then: None,
    }
}

fn with_callers(callers: usize, heavy_caller: Option<f64>) -> Scenario {
    Scenario {
        callers,
        heavy_caller,
        ..scenario()
    }
}

/// How many requests each caller sent.
fn sent(all: &[Ended]) -> BTreeMap<usize, usize> {
    let mut sent = BTreeMap::new();
    for ended in all {
        *sent.entry(ended.caller).or_default() += 1;
    }
    sent
}

#[test]
fn all_requests_of_a_sender_and_those_that_follow_them_come_from_one_caller() {
    const SENDERS: u64 = 20;
    let run = SECOND / 100;
    // Each has been followed when the next comes.
    let pair = |number: u64| Job {
        then: Some(Box::new(job(run, run, None))),
        ..job(number as u32 * SECOND / 10, run, Some(number % SENDERS))
    };
    let all = play(
        &with_callers(8, None),
        &[],
        (0..10 * SENDERS).map(pair).collect(),
    );
    let mut callers: BTreeMap<u64, BTreeSet<usize>> = BTreeMap::new();
    for ended in &all {
        let sender = (ended.index / 2) as u64 % SENDERS;
        callers.entry(sender).or_default().insert(ended.caller);
    }
    assert_eq!(callers.len() as u64, SENDERS);
    assert!(callers.values().all(|callers| callers.len() == 1));
    assert!(sent(&all).len() > 4, "senders are spread");
}

#[test]
fn requests_without_a_sender_are_dealt_at_random_and_not_in_turn() {
    let jobs = |number: u32| job(number * SECOND / 100, SECOND / 100, None);
    let mut all = play(&with_callers(4, None), &[], (0..4000).map(jobs).collect());
    all.sort_unstable_by_key(|ended| ended.index);
    for count in sent(&all).into_values() {
        assert!((900..1100).contains(&count), "{count}");
    }
    let pairs = all
        .windows(2)
        .filter(|pair| pair[0].caller == pair[1].caller);
    let again = pairs.count();
    assert!((900..1100).contains(&again), "{again}");
}

#[test]
fn the_heavy_caller_has_its_share_of_the_senders_and_the_others_share_the_rest() {
    for senders in [None, Some(2000)] {
        let jobs = |number: u32| {
            let sender = senders.map(|senders| u64::from(number) % senders);
            job(number * SECOND / 100, SECOND / 100, sender)
        };
        let jobs: Vec<_> = (0..4000).map(jobs).collect();
        let all = play(&with_callers(5, Some(0.6)), &[], jobs);
        let sent = sent(&all);
        assert_eq!(sent.len(), 5);
        assert!((2250..2550).contains(&sent[&0]), "{sent:?}");
        let others = sent.iter().filter(|(caller, _)| **caller > 0);
        assert!(
            others.clone().all(|(_, n)| (300..500).contains(n)),
            "{sent:?}"
        );
    }
}
