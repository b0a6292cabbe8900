// SPDX-License-Identifier: Apache-2.0
//! What came of it beside what document 004 measured, as Markdown.

mod part3;

use std::fmt::Write;

use super::params::Params;
use super::part4::{self, OBJECTIVE, Outcome, Seeds, Way};
use super::published::{JOBS, PART4, Part4};
use super::several;

/// Seconds from one step of the load to the next.
const INTERVALS: [f64; 4] = [10.0, 6.0, 5.0, 3.0];
/// What was used to find a parameter, and what was not.
const FITTED: &str = "fitted";
const HELD_BACK: &str = "held back";

/// The outcomes of one way at one interval, a seed each.
struct Cell {
    way: Way,
    interval_s: f64,
    outcomes: Vec<Outcome>,
}

impl Cell {
    fn mean(&self, of: impl Fn(&Outcome) -> f64) -> f64 {
        self.outcomes.iter().map(of).sum::<f64>() / self.outcomes.len() as f64
    }

    /// From run to run.
    fn deviation(&self, of: impl Fn(&Outcome) -> f64) -> f64 {
        let mean = self.mean(&of);
        self.mean(|outcome| (of(outcome) - mean).powi(2)).sqrt()
    }

    fn violations(&self) -> f64 {
        self.mean(|outcome| outcome.violations)
    }

    fn total(&self) -> f64 {
        self.mean(|outcome| outcome.total_s)
    }

    /// How much later all jobs ended than the other way, load for load, and the standard error of that.
    fn later(&self, other: &Self) -> (f64, f64) {
        let pairs = self.outcomes.iter().zip(&other.outcomes);
        let later: Vec<f64> = pairs.map(|(one, two)| one.total_s - two.total_s).collect();
        let runs = later.len() as f64;
        let mean = later.iter().sum::<f64>() / runs;
        let squares: f64 = later.iter().map(|one| (one - mean).powi(2)).sum();
        (mean, (squares / (runs - 1.0).max(1.0) / runs).sqrt())
    }
}

/// Both parts with these seeds, from 1.
#[must_use]
pub fn markdown(params: &Params, seeds: u64) -> String {
    let cell = |way, interval_s, seeds_of: fn(u64) -> Seeds| Cell {
        way,
        interval_s,
        outcomes: (1..=seeds)
            .map(|seed| part4::run(way, params, interval_s, seeds_of(seed)))
            .collect(),
    };
    let own = PART4.map(|row| cell(Way::Document, row.interval_s, Seeds::document));
    let mut cells = Vec::new();
    for way in Way::ALL {
        cells.extend(INTERVALS.map(|interval_s| cell(way, interval_s, Seeds::both)));
    }
    let mut text = String::new();
    published(&mut text, &own);
    waste(&mut text, &own);
    ways(&mut text, &cells);
    several::markdown(&mut text, params, seeds);
    part3::markdown(&mut text, params, seeds);
    text
}

fn line(text: &mut String, cells: &[String]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
}

fn head(text: &mut String, cells: &[&str]) {
    let _ = writeln!(text, "| {} |", cells.join(" | "));
    let _ = writeln!(text, "|---{}|", "|---:".repeat(cells.len() - 1));
}

fn percent(share: f64) -> String {
    format!("{:.2} %", 100.0 * share)
}

fn off(got: f64, wanted: f64) -> String {
    format!("{:+.1} %", 100.0 * (got / wanted - 1.0))
}

fn compared(text: &mut String, what: &str, wanted: f64, got: f64, share: bool, how: &str) {
    let show = |value: f64| {
        if share {
            percent(value)
        } else {
            format!("{value:.1} s")
        }
    };
    let cells = [
        what.to_owned(),
        show(wanted),
        show(got),
        off(got, wanted),
        how.to_owned(),
    ];
    line(text, &cells);
}

fn published(text: &mut String, cells: &[Cell]) {
    text.push_str(
        "## Part 4: four cores, memcached and six jobs (SIMULATED)\n\n± is the standard deviation from run to run under \
         one load, of three runs in the document.\n\n",
    );
    head(text, &["", "document 004", "SIMULATED", "off by", ""]);
    for row in &PART4 {
        let of = |cell: &&Cell| cell.interval_s == row.interval_s;
        let Some(cell) = cells.iter().find(of) else {
            continue;
        };
        compare_row(text, row, cell);
    }
    text.push('\n');
}

fn compare_row(text: &mut String, row: &Part4, cell: &Cell) {
    let at = format!("{} s", row.interval_s);
    let first = row.interval_s == 10.0;
    let fitted = if first { FITTED } else { HELD_BACK };
    if let Some((total, apart)) = row.total_s {
        let got = cell.deviation(|outcome| outcome.total_s);
        let name = format!("{at}: all jobs ({})", both_apart(apart, got));
        compared(text, &name, total, cell.total(), false, HELD_BACK);
    }
    let spread = percent(cell.deviation(|outcome| outcome.violations));
    let name = format!("{at}: violations (SIMULATED: ± {spread} from run to run)");
    compared(
        text,
        &name,
        row.violation(),
        cell.violations(),
        true,
        FITTED,
    );
    for (job, wanted) in row.jobs_s.iter().flatten().enumerate() {
        let of = |outcome: &Outcome| outcome.jobs_s[job];
        let (got, apart) = (cell.mean(of), cell.deviation(of));
        let published = row.apart_s.map_or(f64::NAN, |apart| apart[job]);
        let name = format!("{at}: {} ({})", JOBS[job], both_apart(published, apart));
        compared(text, &name, *wanted, got, false, fitted);
    }
}

/// From run to run under one load: by chance alone.
fn both_apart(published: f64, simulated: f64) -> String {
    format!("± {published:.1} s, SIMULATED: ± {simulated:.1} s")
}

fn waste(text: &mut String, cells: &[Cell]) {
    text.push_str(
        "## Waste of the blocks (SIMULATED)\n\nUntil all jobs have ended, at the document's pace under its load. The document: at \
         most one core while one job runs, and only while memcached does not need two.\n\n",
    );
    let columns = [
        "interval",
        "core 1 is memcached's for want of jobs",
        "of that, one core would keep its objective",
        "of the four cores' time",
        "blocks without a job while one waits",
    ];
    head(text, &columns);
    for cell in cells {
        let spare_s = cell.mean(|outcome| outcome.waste.spare_s);
        let row = [
            format!("{} s", cell.interval_s),
            format!("{:.1} s", cell.mean(|outcome| outcome.waste.bound_s)),
            format!("{spare_s:.1} s"),
            percent(spare_s / (f64::from(part4::CORES) * cell.total())),
            format!("{:.1} core s", cell.mean(|outcome| outcome.waste.idle_s)),
        ];
        line(text, &row);
    }
    text.push('\n');
}

fn ways(text: &mut String, cells: &[Cell]) {
    let objective = OBJECTIVE.as_secs_f64() * 1e3;
    let _ = writeln!(
        text,
        "## Ways to divide the four cores (SIMULATED)\n\nViolations: intervals whose p95 is above {objective} ms.\n"
    );
    let columns = [
        "",
        "interval",
        "violations",
        "all jobs",
        "± from load to load",
        "later than blocks, load for load",
        "changes of cores an hour",
        "time on one core",
    ];
    head(text, &columns);
    for cell in cells {
        let total = if cell.total().is_nan() {
            [
                "not within 1,800 s".to_owned(),
                String::new(),
                String::new(),
                String::new(),
            ]
        } else {
            [
                format!("{:.1} s", cell.total()),
                format!("{:.1} s", cell.deviation(|outcome| outcome.total_s)),
                beside(cell, cells),
                format!("{:.2}", cell.mean(|outcome| outcome.lent)),
            ]
        };
        let [total, deviation, later, lent] = total;
        let row = [
            cell.way.name().to_owned(),
            format!("{} s", cell.interval_s),
            percent(cell.violations()),
            total,
            deviation,
            later,
            format!("{:.0}", cell.mean(|outcome| outcome.changes)),
            lent,
        ];
        line(text, &row);
    }
    text.push('\n');
}

/// Beside `blocks` at the same pace and interval.
fn beside(cell: &Cell, cells: &[Cell]) -> String {
    let same =
        |other: &&Cell| other.interval_s == cell.interval_s && Some(other.way) == cell.way.beside();
    let Some(blocks) = cells.iter().find(same) else {
        return String::new();
    };
    let (later, error) = cell.later(blocks);
    format!("{later:+.1} ± {error:.1} s")
}
