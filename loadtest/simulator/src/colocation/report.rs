// SPDX-License-Identifier: Apache-2.0
//! What came of it beside what document 004 measured, as Markdown.

use std::fmt::Write;

use super::params::Params;
use super::part3::{Outcome as Static, Written};
use super::part4::{self, OBJECTIVE, Outcome, Seeds, Way};
use super::published::{JOBS, PART3_NAIVE_S, PART3_S, PART3_TOTAL_S, PART4, Part4};
use super::search::Search;

/// Seconds from one step of the load to the next.
const INTERVALS: [f64; 4] = [10.0, 6.0, 5.0, 3.0];
/// What was used to find a parameter, and what was not.
const FITTED: &str = "fitted";
const HELD_BACK: &str = "held back";
/// Of the search for a better plan.
const CLIMBS: u64 = 20;
const MOVES: u32 = 20_000;

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
    ways(&mut text, &cells);
    part3(&mut text, params);
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

fn part3(text: &mut String, params: &Params) {
    text.push_str("## Part 3: a plan for two nodes (SIMULATED)\n\n");
    let document = Written::document();
    let played = document.play(params);
    head(text, &["", "document 004", "SIMULATED", "off by", ""]);
    let wanted = PART3_TOTAL_S;
    compared(text, "all jobs", wanted, played.total_s, false, FITTED);
    for (job, wanted) in PART3_S.into_iter().enumerate() {
        compared(text, JOBS[job], wanted, played.jobs_s[job], false, FITTED);
    }
    let at_once = document.at_once().play(params).total_s;
    compared(
        text,
        "all jobs at once",
        PART3_NAIVE_S,
        at_once,
        false,
        HELD_BACK,
    );
    let search = Search::new(params);
    let (_, better) = search.best(CLIMBS, MOVES);
    found(
        text,
        &better,
        &better.play(params),
        search.bound(),
        played.total_s,
    );
}

fn found(text: &mut String, better: &Written, played: &Static, bound: f64, document: f64) {
    let total = played.total_s;
    let _ = writeln!(
        text,
        "\nThe best plan of {CLIMBS} climbs with {MOVES} moves each ends after {total:.1} s, {:.0} % sooner than the \
         document's and {:.1} % above {bound:.1} s, which no plan can beat.\n",
        100.0 * (1.0 - total / document),
        100.0 * (total / bound - 1.0),
    );
    head(text, &["job", "node", "cores", "threads", "after"]);
    for row in better.rows() {
        line(text, &row);
    }
    text.push('\n');
}
