// SPDX-License-Identifier: Apache-2.0
//! A search for the parameters that bring out the production row.
//!
//! Seeded hill climbing: a few parameters are moved at random, by a factor drawn about one; what
//! comes nearer is kept, and the factors shrink as long as nothing does.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::published::{MOST_COLUMN, Row, Rows};
use super::{Circumstance, Experiment, Params};
use crate::draws::normal;
use crate::scenario::Impossible;
use crate::tally::Tally;
use crate::{Ended, at_once};

/// What is fitted, and within which bounds it is plausible. The others are fixed.
pub const FREE: [(&str, f64, f64); 16] = [
    ("run_s", 0.02, 5.0),
    ("size_sigma", 1.0, 2.6),
    ("run_sigma", 0.3, 2.2),
    ("high_run", 0.2, 3.0),
    ("high_run_sigma", 0.3, 2.2),
    ("high_share", 0.1, 0.6),
    ("usable_cores", 1.0, 16.0),
    ("fetch_rate", 1e7, 1e9),
    ("fetch_base_s", 0.01, 0.5),
    ("channel_tail", 1.05, 2.5),
    ("piled_share", 0.05, 1.0),
    ("import_s", 10.0, 900.0),
    ("channel_gap_s", 0.05, 60.0),
    ("changed_share", 0.05, 1.0),
    ("manual_share", 0.005, 0.5),
    ("deaf_at", 50.0, 2000.0),
];

/// How a row differs: the mean of the squared logarithms of the ratios. Means and 95th percentiles,
/// which have to come out, weigh four times as much as the others; below a millisecond is below
/// what is modelled.
#[must_use]
pub fn distance(got: &Rows, expected: &Rows) -> f64 {
    let (mut sum, mut weights) = (0.0, 0.0);
    for ((_, got), (_, expected)) in got.named().into_iter().zip(expected.named()) {
        // The most of a day is one job's.
        let columns = got.into_iter().zip(expected).take(MOST_COLUMN);
        for (column, (got, expected)) in columns.enumerate() {
            if expected < 1e-3 && got < 1e-3 {
                continue;
            }
            let weight = if column == 0 || column == 3 { 4.0 } else { 1.0 };
            sum += weight * (got.max(1e-3) / expected.max(1e-3)).ln().powi(2);
            weights += weight;
        }
    }
    sum / f64::max(weights, 1.0)
}

/// The mean over several seeds.
#[must_use]
pub fn mean(rows: &[Rows]) -> Rows {
    let mean = |of: fn(&Rows) -> Row| {
        let mut row = Row::default();
        for one in rows.iter().map(of) {
            for (sum, value) in row.iter_mut().zip(one) {
                *sum += value / rows.len().max(1) as f64;
            }
        }
        row
    };
    Rows {
        high_duration: mean(|rows| rows.high_duration),
        low_duration: mean(|rows| rows.low_duration),
        high_wait: mean(|rows| rows.high_wait),
        low_wait: mean(|rows| rows.low_wait),
    }
}

/// Runs an experiment for every seed, as many at a time as the machine has cores. `watch` makes what
/// is told of every request of a seed.
///
/// # Errors
/// The parameters make no scenario.
pub fn run_all<W: FnMut(&Ended)>(
    experiment: Experiment,
    circumstance: Circumstance,
    params: &Params,
    seeds: &[u64],
    hours: f64,
    watch: impl Fn(u64) -> W + Sync,
) -> Result<Vec<Tally>, Impossible> {
    let run = |seed: &u64| experiment.run(circumstance, params, *seed, hours, watch(*seed));
    at_once(seeds, run).into_iter().collect()
}

/// How far these parameters are from the rows of these runs, and what comes of them.
///
/// # Errors
/// The parameters make no scenario.
pub fn try_out(
    runs: &[Experiment],
    params: &Params,
    seeds: &[u64],
    hours: f64,
) -> Result<(f64, Vec<Rows>), Impossible> {
    let (mut sum, mut all) = (0.0, Vec::new());
    for run in runs {
        let tallies = run_all(
            *run,
            Circumstance::AsPublished,
            params,
            seeds,
            hours,
            |_| |_: &Ended| {},
        )?;
        let rows: Vec<_> = tallies.iter().map(Tally::rows).collect();
        let rows = mean(&rows);
        sum += distance(&rows, run.published());
        all.push(rows);
    }
    Ok((sum / runs.len().max(1) as f64, all))
}

/// Tries out moves of `start` and keeps the best; tells of each that was better.
///
/// # Errors
/// The parameters make no scenario.
pub fn climb(
    runs: &[Experiment],
    start: &Params,
    seeds: &[u64],
    hours: f64,
    tries: u32,
    seed: u64,
    mut tell: impl FnMut(u32, f64, &Params),
) -> Result<Params, Impossible> {
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut best = start.clone();
    let (mut nearest, _) = try_out(runs, &best, seeds, hours)?;
    tell(0, nearest, &best);
    let mut step = 0.5;
    for number in 1..=tries {
        let next = moved(&best, step, &mut rng);
        let (distance, _) = try_out(runs, &next, seeds, hours)?;
        if distance < nearest {
            (nearest, best) = (distance, next);
            step = f64::min(step * 1.3, 0.7);
            tell(number, nearest, &best);
        } else {
            step = f64::max(step * 0.95, 0.08);
        }
    }
    Ok(best)
}

/// One to four parameters elsewhere.
fn moved(params: &Params, step: f64, rng: &mut SmallRng) -> Params {
    let mut moved = params.clone();
    for _ in 0..rng.random_range(1..=4) {
        let (name, least, most) = FREE[rng.random_range(0..FREE.len())];
        if let Some(value) = moved.get(name) {
            let value = (value * (step * normal(rng)).exp()).clamp(least, most);
            // The names are those of parameters, the bounds are above 0.
            let _ = moved.set(name, value);
        }
    }
    moved
}

#[cfg(test)]
mod tests {
    use super::super::published;
    use super::*;

    #[test]
    fn every_free_parameter_exists_and_its_default_is_within_its_bounds() {
        let params = Params::default();
        for (name, least, most) in FREE {
            let value = params.get(name).unwrap();
            assert!((least..=most).contains(&value), "{name}");
        }
    }

    #[test]
    fn the_published_row_is_at_no_distance_from_itself_and_double_is_further_than_half_more() {
        let published = published::PRODUCTION;
        assert_eq!(distance(&published, &published), 0.0);
        let times = |factor: f64| Rows {
            low_wait: published.low_wait.map(|value| value * factor),
            ..published
        };
        let far = distance(&times(2.0), &published);
        assert!(far > distance(&times(1.5), &published));
        assert!((far - distance(&times(0.5), &published)).abs() < 1e-9);
    }
}
