// SPDX-License-Identifier: Apache-2.0
//! Who comes next under each order of document 003.

use super::*;
use crate::scheduler::{Formula, QuantumSettings};

/// Four joblets of so many milliseconds each.
fn job(key: &str, lasts: [u32; 4]) -> Request<Modelled> {
    let steps = Kind::ALL.into_iter().zip(lasts).map(|(kind, ms)| Step {
        kind,
        result: (kind == Kind::FeedSource).then(|| items_of(key, 0)),
        keep: false,
        cores: 1,
        work: Modelled {
            core_time: ms * MS,
            bytes: 1,
        },
    });
    Request {
        class: 16,
        steps: steps.collect(),
    }
}

/// The kinds of the joblets in the order in which they ran on one core, each job having been
/// submitted at the start.
fn played(order: Order, jobs: usize, lasts: [u32; 4]) -> Vec<usize> {
    let settings = Settings {
        order,
        ..settings(1, 0)
    };
    let mut host = Executor::new(&settings, 1);
    for n in 0..jobs {
        host.submit(Duration::ZERO, job(&n.to_string(), lasts))
            .unwrap();
    }
    let (mut now, mut kinds) = (Duration::ZERO, Vec::new());
    while let Some(start) = host.start(now) {
        kinds.push(start.kind as usize);
        now += start.work.core_time;
        let product = Product {
            output: 1,
            bytes: 1,
        };
        host.finish(now, start.joblet, Ok(product));
        host.check_books();
    }
    assert_eq!(done(host.events()).len(), jobs, "every job ends");
    kinds
}

#[test]
fn priority_finishes_the_oldest_job_first() {
    assert_eq!(played(Order::Priority, 2, [1; 4]), [0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn round_robin_changes_actors_when_the_quantum_is_used_up() {
    let order = |ms: u32| Order::RoundRobin { quantum: ms * MS };
    assert_eq!(played(order(1), 2, [1; 4]), [0, 1, 2, 3, 0, 1, 2, 3]);
    assert_eq!(played(order(2), 2, [1; 4]), [0, 0, 1, 1, 2, 2, 3, 3]);
    assert_eq!(
        played(order(2), 3, [1; 4]),
        [0, 0, 1, 1, 2, 2, 3, 3, 0, 1, 2, 3],
        "the third source waits for a whole round"
    );
}

#[test]
fn rate_based_finishes_what_has_begun_before_it_begins_more() {
    // Free until seen: the first of each actor is tried in the order in which they come up.
    let kinds = played(Order::RateBased, 3, [4, 2, 2, 1]);
    assert_eq!(kinds, [0, 1, 2, 3, 0, 1, 2, 3, 0, 1, 2, 3]);
}

#[test]
fn quantum_runs_a_source_after_every_so_many_other_joblets() {
    let settings = QuantumSettings {
        source_interval: 2,
        ..QuantumSettings::default()
    };
    let kinds = played(Order::Quantum(settings), 4, [1; 4]);
    let sources: Vec<_> = (0..kinds.len()).filter(|i| kinds[*i] == 0).collect();
    assert_eq!(sources, [0, 3, 6, 9]);
}

#[test]
fn a_quantum_actor_in_debt_leaves_its_turn_to_a_less_important_one() {
    let settings = QuantumSettings {
        basic: MS,
        // One millisecond for the output, two for the others: each joblet of 4 ms makes a debt.
        formula: Formula {
            ceiling: 12,
            boundary: 0,
            boost: 1,
        },
        priorities: vec![10, 10, 11],
        source_interval: 1,
    };
    let kinds = played(Order::Quantum(settings), 3, [1, 4, 4, 4]);
    // The second job's shared rules wait since the third joblet, but the output has time left.
    assert_eq!(kinds[..6], [0, 1, 0, 2, 0, 3]);
    let runs = |kind: usize| kinds.iter().filter(|k| **k == kind).count();
    assert_eq!([0, 1, 2, 3].map(runs), [3; 4]);
}

#[test]
fn the_allowance_is_that_of_equation_5_1() {
    let formula = Formula::default();
    let us = Duration::from_micros;
    assert_eq!(formula.quantum(5, us(500)), us(35 * 4 * 500));
    assert_eq!(formula.quantum(20, us(500)), us(20 * 500));
    assert!(formula.quantum(99, us(500)) > Duration::ZERO);
}

#[test]
fn a_thread_for_each_job_shares_the_core_evenly() {
    let settings = Settings {
        order: Order::ThreadPerJob,
        ..settings(1, 0)
    };
    let mut host = Emulator::new(&settings, 1);
    let long = host
        .submit(Duration::ZERO, request("", 16, 10 * MS))
        .unwrap();
    let short = host.submit(2 * MS, request("", 16, 2 * MS)).unwrap();
    let ends: Vec<_> = std::iter::from_fn(|| {
        let due = host.next_due()?;
        let ended = done(host.advance(due));
        Some((ended[0].0, u32::try_from(due.as_micros()).unwrap()))
    })
    .collect();
    // From 2 ms on each has half a core: the short one needs 4 ms, the long one then 6 ms more.
    assert_eq!(ends, [(short, 6_000), (long, 12_000)]);
}

#[test]
fn a_thread_for_each_job_is_still_limited_in_number() {
    let settings = Settings {
        order: Order::ThreadPerJob,
        max_queued: 3,
        ..settings(1, 0)
    };
    let mut host = Executor::new(&settings, 1);
    for _ in 0..4 {
        host.submit(Duration::ZERO, request("", 16, MS)).unwrap();
        assert!(host.start(Duration::ZERO).is_some());
    }
    host.submit(Duration::ZERO, request("", 16, MS)).unwrap();
    assert!(host.start(Duration::ZERO).is_none());
}
