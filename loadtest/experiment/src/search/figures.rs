// SPDX-License-Identifier: Apache-2.0
//! What the rounds of a way say, and what they say beside those of `pure` in the same rounds.

use std::collections::BTreeMap;

use weir_report::Spread;

use crate::search::queries::Load;
use crate::search::rounds::Round;
use crate::search::way::Way;

/// Which figure of a round.
pub type Measure = fn(&Round) -> f64;

/// Those of the tables, by name.
pub const MEASURES: [(&str, Measure); 5] = [
    ("p50", |round| round.p50_us),
    ("p95", |round| round.p95_us),
    ("p99", |round| round.p99_us),
    ("mean", |round| round.mean_us),
    ("CPU", |round| round.cpu_us),
];

/// The figure of a way over all rounds: their median, and their middle half.
#[must_use]
pub fn over_rounds(rounds: &[Round], load: Load, way: Way, measure: Measure) -> Option<Spread> {
    let mut values: Vec<f64> = of(rounds, load, way).map(measure).collect();
    values.sort_by(f64::total_cmp);
    let quarter = values.len() / 4;
    Some(Spread {
        median: weir_report::median(&values)?,
        least: *values.get(quarter)?,
        most: *values.get(values.len() - 1 - quarter)?,
    })
}

/// The same beside `pure`, round by round: the median of all ratios, and the least and most of
/// the medians of each start. The latter is how much two JVMs of one program differ.
#[must_use]
pub fn beside_pure(rounds: &[Round], load: Load, way: Way, measure: Measure) -> Option<Spread> {
    let pure: BTreeMap<(u32, u32), f64> = of(rounds, load, Way::Pure)
        .map(|round| ((round.start, round.round), measure(round)))
        .collect();
    let mut by_start: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for round in of(rounds, load, way) {
        if let Some(pure) = pure.get(&(round.start, round.round)) {
            let ratio = measure(round) / pure;
            by_start.entry(round.start).or_default().push(ratio);
        }
    }
    let all: Vec<f64> = by_start.values().flatten().copied().collect();
    let starts = by_start
        .into_values()
        .filter_map(|ratios| Some(Spread::of(&ratios)?.median));
    let starts = Spread::of(&starts.collect::<Vec<_>>())?;
    Some(Spread {
        median: Spread::of(&all)?.median,
        ..starts
    })
}

fn of(rounds: &[Round], load: Load, way: Way) -> impl Iterator<Item = &Round> {
    rounds
        .iter()
        .filter(move |round| round.load == load && round.way == way)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(start: u32, round: u32, way: Way, p50_us: f64) -> Round {
        Round {
            start,
            round,
            way,
            p50_us,
            ..Round::default()
        }
    }

    #[test]
    fn ratios_are_of_the_same_round_and_their_spread_is_that_of_the_starts() {
        let (pure, agent) = (Way::Pure, Way::Instrumented);
        let rounds = [
            round(0, 0, pure, 100.0),
            round(0, 1, pure, 200.0),
            round(1, 0, pure, 400.0),
            // The order of rounds does not matter.
            round(1, 0, agent, 480.0),
            round(0, 1, agent, 220.0),
            round(0, 0, agent, 100.0),
        ];
        let (_, p50) = MEASURES[0];
        let found = beside_pure(&rounds, Load::Light, agent, p50).unwrap();
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(found.median, 1.1), "{found:?}");
        assert!(
            near(found.least, 1.05) && near(found.most, 1.2),
            "{found:?}"
        );
        assert_eq!(beside_pure(&rounds, Load::Heavy, agent, p50), None);
    }

    #[test]
    fn rounds_are_told_by_their_middle_half() {
        let values = [9.0, 1.0, 5.0, 7.0, 3.0, 6.0, 4.0, 2.0];
        let rounds: Vec<Round> = (0..)
            .zip(values)
            .map(|(number, p50)| round(0, number, Way::Pure, p50))
            .collect();
        let found = over_rounds(&rounds, Load::Light, Way::Pure, MEASURES[0].1).unwrap();
        assert_eq!((found.least, found.median, found.most), (3.0, 4.5, 6.0));
    }
}
