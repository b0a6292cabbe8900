// SPDX-License-Identifier: Apache-2.0
use super::*;

use proptest::prelude::*;

fn steps(interval_ms: u64, duration_ms: u64, rates: (f64, f64), seed: u64) -> Steps {
    let ms = Duration::from_millis;
    Steps::new(ms(interval_ms), ms(duration_ms), rates, seed).unwrap()
}

#[test]
fn a_seed_means_the_same_rates_for_ever() {
    let steps = steps(10_000, 40_000, (5_000.0, 100_000.0), 42);
    let rates: Vec<u64> = steps.intervals().map(|step| step.rate as u64).collect();
    assert_eq!(rates, [37_612, 95_795, 51_203, 11_398]);
}

#[test]
fn a_seed_means_the_same_arrivals_for_ever() {
    let steps = steps(1_000, 2_000, (1_000.0, 1_000.0), 42);
    let first: Vec<u64> = steps
        .arrivals()
        .take(4)
        .map(|arrival| arrival.at_ns)
        .collect();
    assert_eq!(first, [1_352_204, 1_674_766, 2_407_482, 3_943_532]);
}

#[test]
fn a_part_of_an_interval_ends_with_the_run() {
    let ends: Vec<u64> = steps(400, 1_000, (1.0, 2.0), 1)
        .intervals()
        .map(|step| step.end_ns / 1_000_000)
        .collect();
    assert_eq!(ends, [400, 800, 1_000]);
}

#[test]
fn arrivals_are_as_many_and_as_uneven_as_poisson_says() {
    let steps = steps(1_000, 200_000, (1_000.0, 1_000.0), 7);
    let mut counts = vec![0_f64; 200];
    for arrival in steps.arrivals() {
        counts[arrival.interval as usize] += 1.0;
    }
    let mean = counts.iter().sum::<f64>() / 200.0;
    let variance = counts.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 199.0;
    // A Poisson count's variance is its mean; five deviations of each estimate.
    assert!(
        (mean - 1_000.0).abs() < 5.0 * (1_000.0_f64 / 200.0).sqrt(),
        "{mean}"
    );
    assert!((variance / 1_000.0 - 1.0).abs() < 0.5, "{variance}");
}

proptest! {
    #[test]
    fn arrivals_are_in_order_and_within_their_interval(
        seed: u64, interval in 100_u64..300, duration in 300_u64..1_000, min in 1.0..3_000.0, more in 0.0..3_000.0,
    ) {
        let steps = steps(interval, duration, (min, min + more), seed);
        let intervals: Vec<Step> = steps.intervals().collect();
        prop_assert!(intervals.iter().all(|step| (min..=min + more).contains(&step.rate)));
        let mut last = 0;
        for arrival in steps.arrivals() {
            let step = intervals[arrival.interval as usize];
            prop_assert!(last <= arrival.at_ns);
            prop_assert!((step.start_ns..step.end_ns).contains(&arrival.at_ns));
            last = arrival.at_ns;
        }
    }

    #[test]
    fn the_rates_of_a_longer_run_begin_with_those_of_a_shorter_one(seed: u64) {
        let short: Vec<Step> = steps(100, 500, (1.0, 9.0), seed).intervals().collect();
        let long: Vec<Step> = steps(100, 900, (1.0, 9.0), seed).intervals().take(5).collect();
        prop_assert_eq!(short, long);
    }
}

#[test]
fn what_is_no_load_is_refused_by_field() {
    let s = Duration::from_secs;
    let refusal = |interval, duration, rates| {
        Steps::new(interval, duration, rates, 1)
            .unwrap_err()
            .to_string()
    };
    assert_eq!(
        refusal(s(1), s(9), (9.0, 8.0)),
        "min: 9 requests a second are more than max, 8"
    );
    assert!(refusal(s(0), s(9), (1.0, 2.0)).starts_with("interval: 0ns"));
    assert!(refusal(s(10), s(9), (1.0, 2.0)).starts_with("interval: 10s"));
    assert!(refusal(s(1), s(0), (1.0, 2.0)).starts_with("duration: 0ns"));
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(refusal(s(1), s(9), (rate, rate)).starts_with("min: "));
        assert!(refusal(s(1), s(9), (1.0, rate)).starts_with("max: "));
    }
}
