// SPDX-License-Identifier: Apache-2.0
//! What the source knows of a function: its application, run times and memory.

use std::collections::HashMap;
use std::io::BufRead;

use crate::table::{BadInput, read_csv};

const KEY_COLUMNS: [&str; 13] = [
    "key",
    "app",
    "trigger",
    "runs",
    "avg_ms",
    "min_ms",
    "p1_ms",
    "p25_ms",
    "p50_ms",
    "p75_ms",
    "p99_ms",
    "max_ms",
    "mem_mb_p50",
];
/// The measured percentiles and their places in the distribution.
const QUANTILES: [(&str, f64); 7] = [
    ("min_ms", 0.0),
    ("p1_ms", 0.01),
    ("p25_ms", 0.25),
    ("p50_ms", 0.5),
    ("p75_ms", 0.75),
    ("p99_ms", 0.99),
    ("max_ms", 1.0),
];
const BYTES_PER_MB: f64 = 1e6;

#[derive(Debug)]
pub(super) struct Function {
    pub(super) app: String,
    /// Its class.
    pub(super) trigger: String,
    /// Run times in ms at the places of [`QUANTILES`].
    points: [f64; QUANTILES.len()],
    pub(super) bytes: u64,
}

/// Reads the file of functions, by key.
pub(super) fn read(keys: impl BufRead) -> Result<HashMap<String, Function>, BadInput> {
    let mut functions = HashMap::new();
    read_csv(keys, &KEY_COLUMNS, |row| {
        let mut points = [0.0; QUANTILES.len()];
        for (at, (column, _)) in QUANTILES.iter().enumerate() {
            points[at] = row.number(column)?;
            if at > 0 && points[at] < points[at - 1] {
                return Err(row.bad(column, "is below the percentile before it"));
            }
        }
        let function = Function {
            app: row.text("app").to_owned(),
            trigger: row.text("trigger").to_owned(),
            points,
            bytes: (row.number("mem_mb_p50")? * BYTES_PER_MB) as u64,
        };
        match functions.insert(row.text("key").to_owned(), function) {
            Some(_) => Err(row.bad("key", "occurs twice")),
            None => Ok(()),
        }
    })?;
    Ok(functions)
}

impl Function {
    /// The inverse of the distribution function, piecewise linear through the percentiles.
    pub(super) fn run_ms(&self, at: f64) -> f64 {
        for (n, pair) in QUANTILES.windows(2).enumerate() {
            let (from, to) = (pair[0].1, pair[1].1);
            if at <= to {
                let (low, high) = (self.points[n], self.points[n + 1]);
                return low + (high - low) * (at - from) / (to - from);
            }
        }
        self.points[QUANTILES.len() - 1]
    }
}
