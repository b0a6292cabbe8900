// SPDX-License-Identifier: Apache-2.0
//! What the turns of a way say, and what they say beside those of `pure` in the same rounds.

use std::collections::BTreeMap;

use crate::queries::Load;
use crate::rounds::Turn;
use crate::way::Way;

/// A figure of several turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// Half of them are at most this.
    pub median: f64,
    /// The least.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// Which figure of a turn.
pub type Measure = fn(&Turn) -> f64;

/// Those of the tables, by name.
pub const MEASURES: [(&str, Measure); 5] = [
    ("p50", |turn| turn.p50_us),
    ("p95", |turn| turn.p95_us),
    ("p99", |turn| turn.p99_us),
    ("mean", |turn| turn.mean_us),
    ("CPU", |turn| turn.cpu_us),
];

impl Spread {
    fn of(mut values: Vec<f64>) -> Option<Self> {
        values.sort_by(f64::total_cmp);
        Some(Self {
            median: median(&values)?,
            least: *values.first()?,
            most: *values.last()?,
        })
    }
}

/// Of sorted values.
fn median(sorted: &[f64]) -> Option<f64> {
    let upper = *sorted.get(sorted.len() / 2)?;
    match sorted.len() % 2 {
        0 => Some((sorted.get(sorted.len() / 2 - 1)? + upper) / 2.0),
        _ => Some(upper),
    }
}

/// The figure of a way over all rounds: their median, and their middle half.
#[must_use]
pub fn over_rounds(turns: &[Turn], load: Load, way: Way, measure: Measure) -> Option<Spread> {
    let mut values: Vec<f64> = of(turns, load, way).map(measure).collect();
    values.sort_by(f64::total_cmp);
    let quarter = values.len() / 4;
    Some(Spread {
        median: median(&values)?,
        least: *values.get(quarter)?,
        most: *values.get(values.len() - 1 - quarter)?,
    })
}

/// The same beside `pure`, round by round: the median of all ratios, and the least and most of
/// the medians of each start. The latter is how much two JVMs of one program differ.
#[must_use]
pub fn beside_pure(turns: &[Turn], load: Load, way: Way, measure: Measure) -> Option<Spread> {
    let pure: BTreeMap<(u32, u32), f64> = of(turns, load, Way::Pure)
        .map(|turn| ((turn.start, turn.round), measure(turn)))
        .collect();
    let mut by_start: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for turn in of(turns, load, way) {
        if let Some(pure) = pure.get(&(turn.start, turn.round)) {
            let ratio = measure(turn) / pure;
            by_start.entry(turn.start).or_default().push(ratio);
        }
    }
    let all: Vec<f64> = by_start.values().flatten().copied().collect();
    let starts = by_start
        .into_values()
        .filter_map(|ratios| Some(Spread::of(ratios)?.median));
    let starts = Spread::of(starts.collect())?;
    Some(Spread {
        median: Spread::of(all)?.median,
        ..starts
    })
}

fn of(turns: &[Turn], load: Load, way: Way) -> impl Iterator<Item = &Turn> {
    turns
        .iter()
        .filter(move |turn| turn.load == load && turn.way == way)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn turn(start: u32, round: u32, way: Way, p50_us: f64) -> Turn {
        Turn {
            start,
            round,
            way,
            p50_us,
            ..Turn::default()
        }
    }

    #[test]
    fn ratios_are_of_the_same_round_and_their_spread_is_that_of_the_starts() {
        let (pure, agent) = (Way::Pure, Way::Instrumented);
        let turns = [
            turn(0, 0, pure, 100.0),
            turn(0, 1, pure, 200.0),
            turn(1, 0, pure, 400.0),
            // The order of turns does not matter.
            turn(1, 0, agent, 480.0),
            turn(0, 1, agent, 220.0),
            turn(0, 0, agent, 100.0),
        ];
        let (_, p50) = MEASURES[0];
        let found = beside_pure(&turns, Load::Light, agent, p50).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(found.median, 1.1), "{found:?}");
        assert!(
            near(found.least, 1.05) && near(found.most, 1.2),
            "{found:?}"
        );
        assert_eq!(beside_pure(&turns, Load::Heavy, agent, p50), None);
    }

    #[test]
    fn rounds_are_told_by_their_middle_half() {
        let values = [9.0, 1.0, 5.0, 7.0, 3.0, 6.0, 4.0, 2.0];
        let turns: Vec<Turn> = (0..)
            .zip(values)
            .map(|(round, p50)| turn(0, round, Way::Pure, p50))
            .collect();
        let found = over_rounds(&turns, Load::Light, Way::Pure, MEASURES[0].1).unwrap();
        assert_eq!((found.least, found.median, found.most), (3.0, 4.5, 6.0));
    }
}
