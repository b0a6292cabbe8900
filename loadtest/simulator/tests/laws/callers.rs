// SPDX-License-Identifier: Apache-2.0
//! Which caller sends what, and that none knows anything before it could.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use weir_policy::{Overload, Selection};
use weir_sim::workload::{Job, LOW, Work};
use weir_sim::{Ended, Sample, Scenario, simulate_watched};

use crate::{SECOND, play, policy, scenario};

/// Long enough to be told from everything else that takes time.
const NETWORK: Duration = Duration::from_millis(200);

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

/// Hosts with a queue refuse: from when on a burst of one sender makes the requests of another refused, which come
/// every 10 ms. Only one host is there, and the burst lasts.
fn refused_from(scenario: &Scenario, burst_at: Duration) -> Duration {
    const BURST: u64 = 1;
    const PROBE: u64 = 2;
    let run = SECOND / 10;
    let mut jobs: Vec<_> = (0..1000)
        .map(|n| job(n * SECOND / 100, Duration::ZERO, Some(PROBE)))
        .collect();
    let burst = (0..200).map(|_| job(burst_at, run, Some(BURST)));
    jobs.extend(burst);
    jobs.sort_by_key(|job| job.at);
    let all = play(scenario, &[], jobs);
    // Those of the burst come at its moment, when nobody can be refused yet.
    let refused = all.iter().filter(|ended| ended.shed_attempts > 0);
    refused
        .map(|ended| ended.at)
        .min()
        .expect("some are refused")
}

fn one_host(seed: u64) -> Scenario {
    Scenario {
        hosts: 1,
        callers: 16,
        network: NETWORK,
        policy: policy(Selection::Random, Overload::Breaker { queued_jobs: 5 }),
        seed,
        ..scenario()
    }
}

#[test]
fn what_a_poll_saw_is_known_when_its_answer_has_come_back() {
    let burst_at = 4 * SECOND;
    let known = (1..=20).map(|seed| {
        let scenario = Scenario {
            orca: false,
            ..one_host(seed)
        };
        let burst = (0..20).map(|_| job(burst_at, SECOND, None));
        let mut known = None;
        let mut watch = |sample: Sample| {
            if sample.queued > 0 {
                known.get_or_insert(sample.at);
            }
        };
        simulate_watched(&scenario, &[], burst, |_| {}, &mut watch).unwrap();
        known.expect("somebody waits for long")
    });
    let known: BTreeSet<_> = known.collect();
    // The burst's way and the answer's.
    let could = burst_at + 2 * NETWORK;
    assert!(*known.first().unwrap() >= could, "{known:?}");
    assert!(
        *known.last().unwrap() <= could + SECOND * 11 / 10,
        "{known:?}"
    );
}

#[test]
fn tables_tell_of_a_queue_when_its_poll_and_the_table_have_come() {
    let burst_at = 4 * SECOND;
    let froms = (1..=20).map(|seed| {
        let scenario = Scenario {
            orca: false,
            // Nobody reports.
            report: 1_000_000 * SECOND,
            ..one_host(seed)
        };
        refused_from(&scenario, burst_at)
    });
    let froms: BTreeSet<_> = froms.collect();
    // The burst's way, the poll's back, and the table's.
    let could = burst_at + 3 * NETWORK;
    assert!(*froms.first().unwrap() >= could, "{froms:?}");
    let longest = 3 * NETWORK + SECOND * 11 / 10 + SECOND / 5;
    assert!(*froms.last().unwrap() <= burst_at + longest, "{froms:?}");
}

#[test]
fn a_report_tells_of_a_queue_when_it_has_come() {
    let (burst_at, run) = (4 * SECOND, SECOND / 10);
    let froms = (1..=20).map(|seed| {
        let scenario = Scenario {
            // Nobody is polled but before the first request.
            poll: 1_000_000 * SECOND,
            ..one_host(seed)
        };
        refused_from(&scenario, burst_at)
    });
    let froms: BTreeSet<_> = froms.collect();
    // The burst's way, its first run, the answer's way, the report's and the table's. Where one caller has both
    // senders the answer tells it.
    let (told, reported) = (burst_at + 2 * NETWORK + run, burst_at + 4 * NETWORK + run);
    assert!(*froms.first().unwrap() >= told, "{froms:?}");
    let late = froms.iter().filter(|from| **from > told + SECOND / 50);
    assert!(late.clone().all(|from| *from >= reported), "{froms:?}");
    assert!(late.count() > 5, "{froms:?}");
}
