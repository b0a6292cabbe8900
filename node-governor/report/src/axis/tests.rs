// SPDX-License-Identifier: Apache-2.0
use super::*;
use proptest::prelude::*;

fn labels(axis: &Axis, values: &[f64]) -> Vec<String> {
    let span = axis.span(values.iter().copied(), true).unwrap();
    span.ticks().into_iter().map(|tick| tick.label).collect()
}

proptest! {
    #[test]
    fn every_value_has_its_place_in_the_span(
        values in prop::collection::vec(prop::num::f64::NORMAL, 1..20),
        log in any::<bool>(),
        whole_steps in any::<bool>(),
    ) {
        let axis = if log { Axis::log("") } else { Axis::linear("") };
        let held: Vec<f64> = values.iter().copied().filter(|v| axis.holds(*v)).collect();
        let span = axis.span(values.into_iter(), whole_steps);
        prop_assert_eq!(span.is_some(), !held.is_empty());
        for value in held {
            let place = span.unwrap().place(value);
            prop_assert!((-1e-6..=1.0 + 1e-6).contains(&place), "{} at {}", value, place);
        }
    }

    #[test]
    fn an_axis_has_a_readable_number_of_rising_labels(
        low in -1e6f64..1e6,
        width in prop_oneof![1e-3f64..1e6, 1.0f64..10.0],
        log in any::<bool>(),
    ) {
        let low = if log { low.abs() + 1e-3 } else { low };
        let axis = if log { Axis::log("") } else { Axis::linear("") };
        let ticks = axis.span([low, low + width].into_iter(), true).unwrap().ticks();
        prop_assert!((2..=12).contains(&ticks.len()), "{:?}", ticks);
        prop_assert!(ticks.windows(2).all(|pair| pair[0].at < pair[1].at));
        prop_assert!(ticks.iter().all(|tick| (0.0..=1.0).contains(&tick.at)));
    }
}

#[test]
fn zero_is_shown_when_it_is_near() {
    let axis = Axis::linear("");
    assert_eq!(labels(&axis, &[3.0, 9.5]), ["0", "2", "4", "6", "8", "10"]);
    assert_eq!(
        labels(&axis, &[95.0, 105.0]),
        ["94", "96", "98", "100", "102", "104", "106"]
    );
}

#[test]
fn few_decades_are_labelled_at_1_2_and_5_and_many_at_powers() {
    let axis = Axis::log("");
    assert_eq!(
        labels(&axis, &[1.0, 100.0]),
        ["1", "2", "5", "10", "20", "50", "100"]
    );
    assert_eq!(labels(&axis, &[0.001, 1e6]).len(), 5);
}

#[test]
fn a_given_range_is_used_and_a_senseless_one_is_not() {
    let span = |range| {
        Axis {
            range: Some(range),
            ..Axis::log("")
        }
        .span([1.0, 100.0].into_iter(), true)
        .unwrap()
    };
    assert_eq!((span((0.1, 7.0)).low, span((0.1, 7.0)).high), (0.1, 7.0));
    for senseless in [(0.0, 7.0), (7.0, 7.0), (9.0, 7.0), (f64::NAN, 7.0)] {
        assert_eq!((span(senseless).low, span(senseless).high), (1.0, 100.0));
    }
}

#[test]
fn a_single_value_lies_in_the_middle() {
    for axis in [Axis::linear(""), Axis::log("")] {
        let span = axis.span([5.0].into_iter(), false).unwrap();
        assert!((span.place(5.0) - 0.5).abs() < 1e-9);
    }
}

#[test]
fn numbers_are_written_for_people() {
    let written = [
        (1234.0, 0),
        (12345.0, 0),
        (-0.25, 2),
        (-0.001, 1),
        (2e9, 0),
        (1e-6, 6),
        (0.0, 1),
    ]
    .map(|(value, decimals)| number(value, decimals));
    assert_eq!(
        written,
        [
            "1234",
            "12\u{202f}345",
            "−0.25",
            "0.0",
            "2×10⁹",
            "10⁻⁶",
            "0.0"
        ]
    );
}

#[test]
fn an_axis_from_zero_has_a_place_for_zero_and_for_large_values() {
    let axis = Axis::log_from_zero("");
    assert!(axis.holds(0.0) && !axis.holds(-1.0) && !axis.holds(f64::NAN));
    let span = axis.span([0.0, 3.0, 4321.0].into_iter(), true).unwrap();
    assert_eq!((span.low, span.high), (0.0, 5000.0));
    assert_eq!((span.place(0.0), span.place(5000.0)), (0.0, 1.0));
    let labels: Vec<_> = span.ticks().into_iter().map(|tick| tick.label).collect();
    assert_eq!(labels, ["0", "1", "10", "100", "1000"]);
    let small = axis.span([0.0, 2.0].into_iter(), true).unwrap();
    let labels: Vec<_> = small.ticks().into_iter().map(|tick| tick.label).collect();
    assert_eq!(labels, ["0", "1", "2", "5", "10"]);
}
