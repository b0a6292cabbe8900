// SPDX-License-Identifier: Apache-2.0
//! What a part found.

use std::fmt;

use serde::{Serialize, Serializer};
use weir_report::{Plot, Spread, Table, digits};

/// What to say where there is no spread.
pub(crate) const NO_SPREAD: &str = "no rounds, or a figure that is no number";

/// One table, with how it was made and what was hoped for.
#[derive(Default, Serialize)]
pub struct Section {
    pub(crate) title: String,
    /// What was measured and how: rounds, durations, what shares the machine.
    pub(crate) how: String,
    #[serde(with = "Cells")]
    pub(crate) table: Table,
    pub(crate) targets: Vec<Target>,
    /// What a reader has to know beside the figures.
    pub(crate) notes: Vec<String>,
    /// Only for the HTML file.
    #[serde(skip)]
    pub(crate) plots: Vec<Plot>,
}

/// As JSON has it.
#[derive(Serialize)]
#[serde(remote = "Table")]
struct Cells {
    header: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// A figure that was hoped for, beside the one that came.
pub(crate) struct Target {
    pub(crate) what: String,
    pub(crate) bound: Bound,
    pub(crate) got: Spread,
}

#[derive(Clone, Copy)]
pub(crate) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

impl Target {
    /// By the median of the rounds.
    pub(crate) fn met(&self) -> bool {
        match self.bound {
            Bound::AtMost(limit) => self.got.median <= limit,
            Bound::AtLeast(limit) => self.got.median >= limit,
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = if self.met() { "met" } else { "MISSED" };
        let (sign, limit) = match self.bound {
            Bound::AtMost(limit) => ('≤', limit),
            Bound::AtLeast(limit) => ('≥', limit),
        };
        let (what, got, limit) = (&self.what, self.got, digits(limit));
        write!(f, "{verdict}: {what}: {got}, wanted {sign} {limit}")
    }
}

impl Serialize for Target {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missed_target_says_so() {
        let target = |bound| Target {
            what: "CPU to no-op".to_owned(),
            bound,
            got: Spread::of(&[1.3]).unwrap(),
        };
        assert_eq!(
            target(Bound::AtMost(1.25)).to_string(),
            "MISSED: CPU to no-op: 1.30 (1.30 to 1.30), wanted ≤ 1.25"
        );
        assert!(target(Bound::AtLeast(1.25)).met());
    }
}
