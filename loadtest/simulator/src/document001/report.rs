// SPDX-License-Identifier: Apache-2.0
//! What came of the runs beside what document 001 published.
//!
//! ```text
//!               ┌─> tables 4 to 7 ──> markdown, page
//! outcomes ─────┼─> figures 4 to 15 ─> page
//!               └─> data ──> tables.csv, history.csv
//! ```

mod data;
mod figures;
mod tables;

use std::fmt;

use super::Experiment;
use super::published::{Row, SPREADS, Spread};
use crate::tally::Tally;

pub use data::{history_csv, tables_csv};
pub use figures::add_figures;
pub use tables::{add_tables, markdown};

/// Where outcomes are from: never taken for each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Made {
    /// By weir-sim.
    Simulated,
    /// On real Envoys.
    Measured,
}

impl fmt::Display for Made {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simulated => "SIMULATED",
            Self::Measured => "measured",
        })
    }
}

/// One run and what came of it, for every seed.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Which.
    pub experiment: Experiment,
    /// By seed; at least one.
    pub tallies: Vec<Tally>,
}

/// What tables 4, 5 and 7 are of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Quantity {
    Duration,
    Wait,
    Slowdown,
}

impl Quantity {
    const ALL: [(Self, u32, &'static str); 3] = [
        (Self::Duration, 4, "duration / s"),
        (Self::Wait, 5, "wait / s"),
        (Self::Slowdown, 7, "slowdown, W / (W + E)"),
    ];
}

/// By priority, high first.
const PRIORITIES: [&str; 2] = ["high", "low"];

impl Outcome {
    fn name(&self) -> &'static str {
        self.experiment.name()
    }

    fn spread(&self) -> Option<&'static Spread> {
        let mut places = Experiment::ALL.iter().zip(&SPREADS);
        places
            .find(|(one, _)| **one == self.experiment)
            .map(|(_, spread)| spread)
    }

    fn published(&self, quantity: Quantity, priority: usize) -> Row {
        let rows = self.experiment.published();
        let both = match quantity {
            Quantity::Duration => [rows.high_duration, rows.low_duration],
            Quantity::Wait => [rows.high_wait, rows.low_wait],
            Quantity::Slowdown => self.spread().map_or([[f64::NAN; 6]; 2], |spread| {
                [spread.high_slowdown, spread.low_slowdown]
            }),
        };
        both[priority]
    }

    /// By seed.
    fn simulated(&self, quantity: Quantity, priority: usize) -> Vec<Row> {
        let of = |tally: &Tally| {
            let rows = tally.rows();
            let both = match quantity {
                Quantity::Duration => [rows.high_duration, rows.low_duration],
                Quantity::Wait => [rows.high_wait, rows.low_wait],
                Quantity::Slowdown => tally.slowdowns(),
            };
            both[priority]
        };
        self.tallies.iter().map(of).collect()
    }

    /// Mean, least and most over the seeds.
    fn column(&self, quantity: Quantity, priority: usize, column: usize) -> (f64, f64, f64) {
        let rows = self.simulated(quantity, priority);
        over(rows.iter().map(|row| row[column]))
    }

    /// Mean over the seeds of a figure.
    fn mean(&self, of: impl Fn(&Tally) -> f64) -> f64 {
        over(self.tallies.iter().map(of)).0
    }
}

/// Mean, least and most.
fn over(values: impl Iterator<Item = f64>) -> (f64, f64, f64) {
    let (mut n, mut sum, mut least, mut most) = (0.0, 0.0, f64::INFINITY, f64::NEG_INFINITY);
    for value in values {
        (n, sum) = (n + 1.0, sum + value);
        (least, most) = (f64::min(least, value), f64::max(most, value));
    }
    (sum / f64::max(n, 1.0), least, most)
}
