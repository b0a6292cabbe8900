// SPDX-License-Identifier: Apache-2.0
//! What a part found.

use std::fmt;

use weir_report::{Plot, Table};

use weir_report::{Spread, digits};

/// What to say where there is no spread.
pub(crate) const NO_SPREAD: &str = "no rounds, or a figure that is no number";

/// One table, with how it was made and what was hoped for.
pub(crate) struct Section {
    pub(crate) title: String,
    /// What was measured and how: rounds, durations, what shares the machine.
    pub(crate) how: String,
    pub(crate) table: Table,
    pub(crate) targets: Vec<Target>,
    /// What a reader has to know beside the figures.
    pub(crate) notes: Vec<String>,
    /// Only for the HTML file.
    pub(crate) plots: Vec<Plot>,
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

impl fmt::Display for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "\n{}\n{}\n", self.title, self.how)?;
        let rows = || std::iter::once(&self.table.header).chain(&self.table.rows);
        let columns = rows().map(Vec::len).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = rows().filter_map(|row| row.get(column));
            cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..columns).map(width).collect();
        for row in rows() {
            let cell = |(cell, width): (&String, &usize)| format!("{cell:<width$}");
            let cells: Vec<String> = row.iter().zip(&widths).map(cell).collect();
            writeln!(f, "  {}", cells.join("  ").trim_end())?;
        }
        writeln!(f)?;
        for target in &self.targets {
            writeln!(f, "  {target}")?;
        }
        self.notes
            .iter()
            .try_for_each(|note| writeln!(f, "  {note}"))
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
