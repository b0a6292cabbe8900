// SPDX-License-Identifier: Apache-2.0
use super::*;

use proptest::prelude::*;

const STEP: Step = Step {
    start_ns: 0,
    end_ns: 2_000_000_000,
    rate: 50.0,
};

/// An interval with such latencies in microseconds, and others that were never answered.
fn interval(answered_us: &[u64], failed: u64, dropped: u64) -> Interval {
    let mut interval = Interval::new(0, STEP);
    for latency in answered_us {
        interval.sent(0, 1);
        interval.answered(latency * 1_000, 0);
    }
    (0..failed).for_each(|_| {
        interval.sent(0, 1);
        interval.failed();
    });
    (0..dropped).for_each(|_| interval.dropped());
    interval
}

#[test]
fn percentiles_and_rates_are_those_of_the_requests() {
    let answered: Vec<u64> = (1..=100).collect();
    let figures = interval(&answered, 0, 0).figures(95);
    let expected = Latency {
        p50_us: Some(50),
        p95_us: Some(95),
        p99_us: Some(99),
        max_us: Some(100),
    };
    assert_eq!(figures.latency, expected);
    assert!(!figures.violated);
    assert_eq!((figures.achieved_qps, figures.target_qps), (50.0, 50.0));
    assert!(interval(&answered, 0, 0).figures(94).violated);
}

#[test]
fn what_was_not_answered_ranks_behind_every_answer() {
    let fast = [1; 90];
    let figures = interval(&fast, 5, 0).figures(1_000);
    // 91 of 95 would be needed.
    assert_eq!(figures.latency.p95_us, None);
    assert!(figures.violated);
    let figures = interval(&fast, 0, 4).figures(1_000);
    assert_eq!(figures.latency.p95_us, Some(1));
    assert_eq!(figures.latency.p99_us, None);
    assert!(!figures.violated);
    let nothing = interval(&[], 1, 0).figures(1_000);
    assert!(nothing.violated);
    assert_eq!(nothing.latency, Latency::default());
}

#[test]
fn an_interval_in_which_nothing_was_due_violates_nothing() {
    assert!(!interval(&[], 0, 0).figures(1).violated);
}

#[test]
fn an_interval_is_over_when_time_is_up_and_all_is_known() {
    let mut interval = interval(&[7], 1, 1);
    assert!(!interval.is_over(STEP.end_ns - 1));
    assert!(interval.is_over(STEP.end_ns));
    interval.sent(0, 1);
    assert!(!interval.is_over(STEP.end_ns));
    interval.failed();
    assert!(interval.is_over(STEP.end_ns));
}

proptest! {
    #[test]
    fn an_interval_is_violated_exactly_if_fewer_than_95_of_100_were_in_time(
        latencies in prop::collection::vec(1_u64..100, 0..200), failed in 0_u64..20, dropped in 0_u64..20,
    ) {
        let limit = 80;
        let figures = interval(&latencies, failed, dropped).figures(limit);
        let due = latencies.len() as u64 + failed + dropped;
        let in_time = latencies.iter().filter(|&&latency| latency <= limit).count() as u64;
        prop_assert_eq!(figures.counts.due, due);
        prop_assert_eq!(figures.violated, in_time * 100 < due * 95);
    }
}
