// SPDX-License-Identifier: Apache-2.0
use super::*;
use proptest::prelude::*;

fn lanes(stretches: &[(f64, f64, usize)]) -> Lanes {
    let kind = |name: &str, thin| Kind {
        name: name.to_owned(),
        thin,
    };
    let stretch = |(from, to, kind): &(f64, f64, usize)| Stretch {
        from: *from,
        to: *to,
        kind: *kind,
    };
    Lanes {
        x: Axis::linear("time / s").range(0.0, 1000.0),
        kinds: vec![
            kind("cores 1", false),
            kind("paused", true),
            kind("cores 2", false),
        ],
        rows: vec![Lane {
            label: "a < b".to_owned(),
            stretches: stretches.iter().map(stretch).collect(),
            ..Lane::default()
        }],
        ..Lanes::default()
    }
}

fn blocks(stretches: &[(f64, f64, usize)]) -> Vec<Block> {
    let lanes = lanes(stretches);
    let x = lanes.x.span([0.0, 1000.0].into_iter(), false).unwrap();
    lanes.blocks(&lanes.rows[0], &x, 1000)
}

#[test]
fn long_stretches_are_drawn_as_they_are() {
    let blocks = blocks(&[(0.0, 500.0, 0), (500.0, 600.0, 1), (700.0, 1000.0, 2)]);
    let expected = [(0.0, 0.5, 0, 1.0), (0.5, 0.6, 1, 1.0), (0.7, 1.0, 2, 1.0)];
    assert_eq!(blocks.len(), 3, "{blocks:?}");
    for (block, expected) in blocks.iter().zip(expected) {
        assert!((block.0 - expected.0).abs() < 1e-9 && (block.1 - expected.1).abs() < 1e-9);
        assert_eq!((block.2, block.3), (expected.2, expected.3));
    }
}

#[test]
fn what_is_too_short_to_be_drawn_lowers_the_bar() {
    // Half of the time it is paused, ten times in a column.
    let half: Vec<_> = (0..10_000)
        .map(|n| (f64::from(n) / 10.0, f64::from(n + 1) / 10.0, n as usize % 2))
        .collect();
    assert_eq!(blocks(&half), [(0.0, 1.0, 0, 0.5)]);
    // A short pause in a long run is a notch.
    let notch = blocks(&[(0.0, 500.2, 0), (500.2, 500.201, 1), (500.201, 1000.0, 0)]);
    let heights: Vec<f64> = notch.iter().map(|block| block.3).collect();
    assert_eq!(heights, [1.0, 0.875, 1.0], "{notch:?}");
}

#[test]
fn a_moment_is_wide_enough_to_be_seen() {
    let blocks = blocks(&[(3.0, 3.0, 0)]);
    assert_eq!(blocks.len(), 1);
    assert!(
        (blocks[0].1 - blocks[0].0 - 0.001).abs() < 1e-9,
        "{blocks:?}"
    );
}

#[test]
fn only_what_happened_is_in_the_legend_and_a_bad_end_stands_out() {
    let mut lanes = lanes(&[(0.0, 500.0, 2)]);
    lanes.rows[0].marks = vec![0.0, 500.0];
    lanes.rows[0].note = "failed, 1".to_owned();
    lanes.rows[0].bad = true;
    let html = lanes.parts().figure();
    assert!(
        html.contains("<i class=\"swatch b1\"></i>cores 2"),
        "{html}"
    );
    assert!(!html.contains("</i>paused") && !html.contains("</i>cores 1"));
    assert!(
        html.contains("<path class=\"edge bad\" d=\"M500 0v10\"/>"),
        "{html}"
    );
    assert!(html.contains("<span class=\"bad\" style=\"top:50%\">failed, 1</span>"));
    assert!(html.contains("a &lt; b"));
}

#[test]
fn lanes_of_nothing_say_so() {
    assert!(Lanes::default().parts().figure().contains("no data"));
}

proptest! {
    #[test]
    fn however_many_stretches_there_are_the_drawing_stays_small_and_whole(
        stretches in prop::collection::vec((any::<f64>(), any::<f64>(), 0..5usize), 0..20),
        short in prop::collection::vec((0.0..1000.0f64, 0.0..0.5f64, 0..3usize), 0..2000),
    ) {
        let short = short.into_iter().map(|(from, long, kind)| (from, from + long, kind));
        let all: Vec<_> = stretches.into_iter().chain(short).collect();
        let html = lanes(&all).parts().figure();
        prop_assert!(!html.contains("NaN") && !html.contains("inf"), "{}", html);
        prop_assert!(html.matches('z').count() <= MOST + 200, "{}", html.matches('z').count());
    }
}
