// SPDX-License-Identifier: Apache-2.0
//! One table: by way, stage and priority.

use std::fmt;

use crate::demo::table::milliseconds;
use crate::load::figures::Row;
use crate::load::tried::{Tried, share};

pub(super) struct Table<'a>(pub(super) &'a [Tried]);

impl fmt::Display for Table<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<21} {:<12} {:<5}{:>7} {:>8} {:>8} {:>9} {:>6} {:>7} |{:>7}{:>7}{:>7} | goodput",
            "way",
            "stage",
            "prio",
            "sent",
            "success",
            "refused",
            "timed out",
            "late",
            "failed",
            "p50",
            "p95",
            "p99"
        )?;
        for tried in self.0 {
            writeln!(f, "{:-<93}+{:-<22}+--------", "", "")?;
            let mut way = tried.way.as_str();
            let mut last = "";
            for row in tried.figures.by_priority() {
                let stage = if row.stage == last { "" } else { &row.stage };
                let goodput = tried.figures.goodput.get(stage).copied();
                line(f, way, stage, row, goodput)?;
                (way, last) = ("", &row.stage);
            }
        }
        Ok(())
    }
}

fn line(
    f: &mut fmt::Formatter<'_>,
    way: &str,
    stage: &str,
    row: &Row,
    goodput: Option<f64>,
) -> fmt::Result {
    writeln!(
        f,
        "{way:<21} {stage:<12} {:<5}{:>7} {:>8} {:>8} {:>9} {:>6} {:>7} |{:>7}{:>7}{:>7} | {}",
        row.priority.as_deref().unwrap_or("all"),
        row.requests,
        share(row.success),
        row.outcome("refused"),
        row.outcome("timed_out"),
        row.outcome("late"),
        row.outcome("failed"),
        milliseconds(row.p50),
        milliseconds(row.p95),
        milliseconds(row.p99),
        goodput.map_or_else(String::new, |share| format!("{share:.3}")),
    )
}
