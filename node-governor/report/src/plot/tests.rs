// SPDX-License-Identifier: Apache-2.0
use super::*;
use proptest::prelude::*;

fn plot(points: &[(f64, f64)], style: Style) -> Plot {
    let series = Series {
        name: "a & b".to_owned(),
        points: points.to_vec(),
        style,
    };
    Plot {
        series: vec![series],
        ..Plot::default()
    }
}

fn drawn(plot: &Plot) -> String {
    let html = plot.parts().figure();
    let path = html
        .split("<path class=\"series")
        .nth(2)
        .expect("the path after the swatch's");
    let d = path
        .split("d=\"")
        .nth(1)
        .and_then(|rest| rest.split('"').next());
    d.expect("a drawn path").to_owned()
}

proptest! {
    #[test]
    fn any_numbers_give_a_drawing_without_broken_coordinates(
        points in prop::collection::vec((any::<f64>(), any::<f64>()), 0..50),
        range in prop::option::of((any::<f64>(), any::<f64>())),
        mark in any::<f64>(),
        log in any::<bool>(),
        style in prop_oneof![Just(Style::Line), Just(Style::Step), Just(Style::Points)],
    ) {
        let x = Axis { range, ..if log { Axis::log("") } else { Axis::linear("") } };
        let marks = vec![VerticalMark { x: mark, label: "m".to_owned() }];
        let html = Plot { x: x.clone(), y: x, marks, ..plot(&points, style) }.parts().figure();
        prop_assert!(!html.contains("NaN") && !html.contains("inf"), "{}", html);
        prop_assert_eq!(html.matches("<svg").count(), html.matches("</svg>").count());
    }
}

#[test]
fn the_three_styles_draw_lines_steps_and_dots() {
    let draw = |style| drawn(&plot(&[(0.0, 0.0), (1.0, 1.0)], style));
    assert_eq!(draw(Style::Line), "M0 1000h0L1000 0");
    assert_eq!(draw(Style::Step), "M0 1000h0H1000V0");
    assert_eq!(draw(Style::Points), "M0 1000h0M1000 0h0");
}

#[test]
fn a_missing_value_is_a_gap_that_is_counted() {
    let plot = plot(&[(0.0, 0.0), (1.0, f64::NAN), (2.0, 1.0)], Style::Line);
    assert_eq!(drawn(&plot), "M0 1000h0M1000 0h0");
    assert!(plot.parts().figure().contains("1 point is left out"));
}

#[test]
fn values_that_a_logarithm_cannot_show_are_counted() {
    let plot = Plot {
        y: Axis::log(""),
        ..plot(&[(0.0, 0.0), (1.0, -1.0), (2.0, 1.0)], Style::Line)
    };
    assert!(plot.parts().figure().contains("2 points are left out"));
}

#[test]
fn a_plot_of_nothing_says_so() {
    for points in [&[][..], &[(f64::NAN, 1.0)]] {
        let html = plot(points, Style::Line).parts().figure();
        assert!(html.contains("no data") && !html.contains("class=\"drawing"));
    }
}

#[test]
fn a_close_look_is_not_thinned_with_what_lies_outside() {
    let points: Vec<_> = (0..100_000)
        .map(|n| (f64::from(n), f64::from(n % 7)))
        .collect();
    let whole = plot(&points, Style::Points);
    let close = Plot {
        x: Axis::linear("").range(500.0, 700.0),
        ..whole.clone()
    };
    assert!(drawn(&whole).matches('M').count() <= DRAWN);
    assert_eq!(drawn(&close).matches('M').count(), 203);
    assert!(close.parts().figure().contains("drawing clip"));
}

#[test]
fn twenty_one_series_look_different() {
    let one = plot(&[(0.0, 0.0)], Style::Line).series.remove(0);
    let html = Plot {
        series: vec![one; COLOURS * STROKES],
        ..Plot::default()
    }
    .parts()
    .figure();
    let mut classes: Vec<_> = html
        .split("class=\"series ")
        .skip(1)
        .map(|rest| rest.split('"').next())
        .collect();
    classes.sort_unstable();
    classes.dedup();
    assert_eq!(classes.len(), COLOURS * STROKES);
}

#[test]
fn labels_of_close_marks_do_not_share_a_row() {
    let mark = |x, label: &str| VerticalMark {
        x,
        label: label.to_owned(),
    };
    let marks = vec![
        mark(0.5, "rate doubles"),
        mark(0.1, "warm"),
        mark(0.52, "host 3 gone"),
        mark(9.0, "out of sight"),
    ];
    let x = Axis::linear("").range(0.0, 1.0);
    let html = Plot {
        x,
        marks,
        ..plot(&[(0.0, 0.0), (1.0, 1.0)], Style::Line)
    }
    .parts()
    .figure();
    assert!(
        html.contains("top:0em") && html.contains("top:1.35em"),
        "{html}"
    );
    assert!(!html.contains("out of sight"));
}
