// SPDX-License-Identifier: Apache-2.0
//! Parts sum to the whole, and times in state are those of the calls.

use std::time::Duration;

use proptest::prelude::*;

use super::*;
use crate::frequency::tests::node;
use crate::sensed::{Core, Finished};

const MS: u64 = 1_000_000;
const FAST: Khz = Khz(2_600_000);
const SLOW: Khz = Khz(1_000_000);

fn any_window() -> impl Strategy<Value = Window> {
    let step = (
        0u32..4_000_000,
        proptest::collection::vec((0..FUNCTIONS, 0.0..10.0), 0..4),
        0.0..10.0,
        0.0..10.0,
    );
    let step = step.prop_map(|(khz, calls, other, idle)| {
        let mut hot = [0.0; FUNCTIONS];
        calls
            .into_iter()
            .for_each(|(function, seconds)| hot[function] += seconds);
        Step {
            khz: Khz(khz),
            hot,
            other,
            idle,
        }
    });
    (0.0..10.0, 0.0..10.0, proptest::collection::vec(step, 1..6)).prop_map(
        |(seconds, awake_s, steps)| Window {
            seconds,
            awake_s,
            lowest: SLOW,
            highest: FAST,
            steps,
        },
    )
}

fn any_power() -> impl Strategy<Value = Power> {
    let watts = || prop_oneof![Just(0.0), 0.0..100.0];
    (watts(), watts(), 0.0..=1.0, watts(), watts(), watts()).prop_map(
        |(core_watts, leak_watts, low_volts, idle_watts, package_watts, awake_watts)| Power {
            core_watts,
            leak_watts,
            low_volts,
            idle_watts,
            package_watts,
            awake_watts,
        },
    )
}

proptest! {
    #[test]
    fn parts_are_never_negative_and_sum_to_the_whole(
        window in any_window(), power in any_power(), joules in 0.0..1e6,
    ) {
        let core_s: f64 = window.steps.iter().map(|s| s.hot.iter().sum::<f64>() + s.other + s.idle).sum();
        prop_assume!(core_s > 0.0);
        let mut sum = 0.0;
        split(&window, &power, Some(joules), |_, parts| {
            assert!(parts.iter().all(|part| *part >= 0.0), "{parts:?}");
            sum += parts.iter().sum::<f64>();
        });
        prop_assert!((sum - joules).abs() <= 1e-9 * joules, "{sum} of {joules}");
    }
}

/// Ticks of 10 ms on one core: what `at` says of the `n`-th.
fn play(ticks: u64, at: impl Fn(u64, &mut Sensed) -> Khz) -> Attribution {
    let mut attribution = Attribution::new(&node(1), Power::default());
    let mut sensed = Sensed::default();
    for tick in 0..=ticks {
        sensed = Sensed {
            now: Nanos(1_000 * MS + tick * 10 * MS),
            cores: vec![Core {
                online: true,
                ..Core::default()
            }],
            ..Sensed::default()
        };
        sensed.busy_read = sensed.now;
        let khz = at(tick, &mut sensed);
        attribution.passed(&sensed, |_| khz);
    }
    attribution.close(&sensed, None);
    attribution
}

#[test]
fn a_call_has_the_time_in_state_between_its_entry_and_its_return() {
    // Enters at 1003 ms, is fast from 1010 ms on, and returns at 1025 ms; then the core works for somebody else.
    let attribution = play(4, |tick, sensed| {
        sensed.cores[0].busy = [0.0, 0.7, 1.0, 0.5, 0.3][tick as usize];
        match tick {
            1 | 2 => sensed.cores[0].hot.enter(3, Nanos(1_003 * MS)),
            3 => sensed.finished.push(Finished {
                function: 3,
                core: 0,
                took: Duration::from_millis(22),
                at: Nanos(1_025 * MS),
            }),
            _ => {}
        }
        if tick < 2 { SLOW } else { FAST }
    });
    let power = Power::default();
    let watts = |khz| power.active(khz, SLOW, FAST);
    let [(SLOW, slow), (FAST, fast)] = attribution.ledger().steps[..] else {
        panic!("{:?}", attribution.ledger());
    };
    let near = |got: f64, wanted: f64| assert!((got - wanted).abs() < 1e-9, "{got} for {wanted}");
    near(slow[3], 0.007 * watts(SLOW));
    near(fast[3], 0.015 * watts(FAST));
    // 25 ms of 40 are busy, 22 of them in the call: the other 3 are in the last 10 ms.
    near(slow[OTHER], 0.0);
    near(fast[OTHER], 0.003 * watts(FAST));
    let shared = attribution.ledger().part(SHARED);
    let busy = 25.0 / 40.0;
    near(
        shared,
        0.04 * (power.package_watts + busy * power.awake_watts) + 0.015 * power.idle_watts,
    );
}

#[test]
fn calls_of_several_threads_share_their_core() {
    let attribution = play(2, |_, sensed| {
        sensed.cores[0].busy = 1.0;
        sensed.cores[0].hot.enter(0, Nanos(0));
        sensed.cores[0].hot.enter(1, Nanos(0));
        FAST
    });
    let [zero, one, other] = [0, 1, OTHER].map(|part| attribution.ledger().part(part));
    assert!((zero - one).abs() < 1e-12 && other == 0.0);
    let whole = 0.02 * Power::default().active(FAST, SLOW, FAST);
    assert!((zero + one - whole).abs() < 1e-9);
}

#[test]
fn use_that_is_read_late_is_made_up_for() {
    // Use is read every fourth tick: 0.5 for the first 40 ms, then 0.25.
    let attribution = play(8, |tick, sensed| {
        sensed.busy_read = Nanos(1_000 * MS + tick / 4 * 40 * MS);
        sensed.cores[0].busy = [0.0, 0.5, 0.25][(tick / 4) as usize];
        FAST
    });
    let other = attribution.ledger().part(OTHER);
    let wanted = (0.02 + 0.01) * Power::default().active(FAST, SLOW, FAST);
    assert!((other - wanted).abs() < 1e-9, "{other} for {wanted}");
}

#[test]
fn time_in_which_any_call_ran_is_counted_once() {
    assert_eq!(any_ns(&mut [(5, 9), (1, 3), (2, 4), (6, 7)]), 7);
    assert_eq!(any_ns(&mut []), 0);
}
