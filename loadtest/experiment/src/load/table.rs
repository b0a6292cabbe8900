// SPDX-License-Identifier: Apache-2.0
//! One table, as text and for a page: by way, stage and priority.

use std::fmt;

use weir_report::Table;

use crate::demo::table::milliseconds;
use crate::load::figures::Row;
use crate::load::tried::{Tried, share};

const HEADER: [&str; 13] = [
    "way",
    "stage",
    "priority",
    "sent",
    "success",
    "refused",
    "timed out",
    "late",
    "failed",
    "p50 / ms",
    "p95 / ms",
    "p99 / ms",
    "goodput",
];

/// For a terminal: what is as in the line above is left out.
pub(super) struct Text<'a>(pub(super) &'a [Tried]);

/// For a page.
pub(super) fn table(ways: &[Tried]) -> Table {
    let rows = ways.iter().flat_map(|tried| {
        let rows = tried.figures.by_priority();
        rows.map(|row| cells(tried, row).to_vec())
    });
    Table {
        header: HEADER.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

fn cells(tried: &Tried, row: &Row) -> [String; 13] {
    let outcome = |name: &str| row.outcome(name).to_string();
    let goodput = tried.figures.goodput.get(&row.stage);
    [
        tried.way.clone(),
        row.stage.clone(),
        row.priority.clone().unwrap_or_default(),
        row.requests.to_string(),
        share(row.success),
        outcome("refused"),
        outcome("timed_out"),
        outcome("late"),
        outcome("failed"),
        milliseconds(row.p50),
        milliseconds(row.p95),
        milliseconds(row.p99),
        goodput.map_or_else(String::new, |share| format!("{share:.3}")),
    ]
}

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |name: &str| name.trim_end_matches(" / ms").replace("priority", "prio");
        line(f, &HEADER.map(short))?;
        for tried in self.0 {
            writeln!(f, "{:-<93}+{:-<22}+--------", "", "")?;
            let mut last = [const { String::new() }; 2];
            for row in tried.figures.by_priority() {
                let mut cells = cells(tried, row);
                let [way, stage, .., goodput] = &mut cells;
                let same = [way.clone(), stage.clone()];
                if *stage == last[1] {
                    stage.clear();
                    goodput.clear();
                }
                if *way == last[0] {
                    way.clear();
                }
                last = same;
                line(f, &cells)?;
            }
        }
        Ok(())
    }
}

fn line(f: &mut fmt::Formatter<'_>, cells: &[String; 13]) -> fmt::Result {
    let [
        way,
        stage,
        priority,
        sent,
        success,
        refused,
        timed_out,
        late,
        failed,
        p50,
        p95,
        p99,
        goodput,
    ] = cells;
    writeln!(
        f,
        "{way:<21} {stage:<12} {priority:<5}{sent:>7} {success:>8} {refused:>8} {timed_out:>9} {late:>6} {failed:>7} \
         |{p50:>7}{p95:>7}{p99:>7} | {goodput}"
    )
}
