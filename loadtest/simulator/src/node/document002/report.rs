// SPDX-License-Identifier: Apache-2.0
//! Facts and experiments as tables.

use weir_report::Table;

use super::super::cell::{Cell, Lab};
use super::super::{MAX, MIN, Outcome, steps};
use super::DEADLINE_S;
use super::experiments::Experiment;
use super::facts::{Fact, MIDDLE};

/// Mean, and the least and the most where seeds differ.
pub(in crate::node) fn spread(each: &[f64], digits: usize) -> String {
    let mean = each.iter().sum::<f64>() / each.len().max(1) as f64;
    let least = each.iter().copied().fold(f64::INFINITY, f64::min);
    let most = each.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let shown = |value: f64| format!("{value:.digits$}").replace('-', "−");
    match shown(least) == shown(most) {
        true => shown(mean),
        false => format!("{} ({}–{})", shown(mean), shown(least), shown(most)),
    }
}

fn owned<const N: usize>(cells: [&str; N]) -> Vec<String> {
    cells.map(str::to_owned).to_vec()
}

/// What the text says beside what the model says.
#[must_use]
pub fn facts_table(facts: &[Fact]) -> Table {
    let row = |fact: &Fact| {
        let digits = match fact.what.contains('%') {
            true => 1,
            false => 3,
        };
        vec![
            fact.section.to_owned(),
            fact.what.to_owned(),
            fact.wanted.shown(),
            spread(&fact.got, digits),
            if fact.fitted { "fitted" } else { "check" }.to_owned(),
            if fact.holds() { "yes" } else { "no" }.to_owned(),
        ]
    };
    Table {
        header: owned([
            "section",
            "what",
            "wanted",
            "got, SIMULATED",
            "used as",
            "holds",
        ]),
        rows: facts.iter().map(row).collect(),
    }
}

/// Columns of every table of runs.
#[must_use]
pub fn header() -> Vec<String> {
    owned([
        "load",
        "governor",
        "p50 / s",
        "p99 / s",
        "later than 1 s / %",
        "power, MODEL / W",
        "energy against the first, MODEL / %",
        "C6 / %",
        "C0 to C1E idle / %",
        "idle told 1.0 GHz / %",
        "1.0 GHz / %",
        "between / %",
        "2.0 GHz / %",
        "between / %",
        "2.6 GHz / %",
    ])
}

/// One run; `first` is what its energy is compared with, query by query where both ran equally many.
pub fn row(lab: &mut Lab, load: &str, name: &str, cell: &Cell, first: &Cell) -> Vec<String> {
    let per = |outcome: &Outcome| match cell.load.cycle_s {
        0.0 => outcome.energy.joules() / outcome.latencies.len() as f64,
        _ => outcome.watts(),
    };
    let against = lab.each(first, per);
    let outcomes = lab.outcomes(cell);
    let each = |of: &dyn Fn(&Outcome) -> f64| outcomes.iter().map(of).collect::<Vec<f64>>();
    let energy: Vec<f64> = outcomes
        .iter()
        .zip(&against)
        .map(|(outcome, first)| 100.0 * (per(outcome) / first - 1.0))
        .collect();
    let mut row = vec![
        load.to_owned(),
        name.to_owned(),
        spread(&each(&|one| one.quantile(0.5)), 2),
        spread(&each(&|one| one.quantile(0.99)), 2),
        spread(&each(&|one| 100.0 * one.missed(DEADLINE_S)), 2),
        spread(&each(&Outcome::watts), 1),
        spread(&energy, 1),
    ];
    let mean = |of: &dyn Fn(&Outcome) -> f64| each(of).iter().sum::<f64>() / outcomes.len() as f64;
    let mut share = |of: &dyn Fn(&Outcome) -> f64| row.push(format!("{:.1}", 100.0 * mean(of)));
    for part in 0..7 {
        share(&|one| residency(one)[part]);
        if part == 1 {
            share(&idle_told_slow);
        }
    }
    row
}

/// Shares of the cores' time: C6, shallower idle states, 1.0 GHz, above, 2.0 GHz, above, 2.6 GHz.
fn residency(outcome: &Outcome) -> [f64; 7] {
    let mut parts = [0.0; 7];
    parts[0] = outcome.idle_s[3];
    parts[1] = outcome.idle_s[..3].iter().sum();
    for (khz, seconds) in steps().into_iter().zip(&outcome.active_s) {
        let part = match khz {
            khz if khz == MIN => 2,
            khz if khz < MIDDLE => 3,
            khz if khz == MIDDLE => 4,
            khz if khz < MAX => 5,
            _ => 6,
        };
        parts[part] += seconds;
    }
    let all: f64 = parts.iter().sum();
    parts.map(|part| part / all)
}

/// Of the time that cores were idle, that in which the lowest frequency was what they were told.
fn idle_told_slow(outcome: &Outcome) -> f64 {
    let idle: f64 = outcome.idle_at_s.iter().sum();
    let steps = steps().into_iter().zip(&outcome.idle_at_s);
    let slow: f64 = steps
        .filter(|(khz, _)| *khz == MIN)
        .map(|(_, seconds)| seconds)
        .sum();
    slow / idle.max(f64::MIN_POSITIVE)
}

/// An experiment's runs.
pub fn table(lab: &mut Lab, experiment: &Experiment) -> Table {
    let mut rows = Vec::new();
    let mut first: Option<(&str, &Cell)> = None;
    for (load, name, cell) in &experiment.rows {
        let base = match first {
            Some((of, base)) if of == load => base,
            _ => cell,
        };
        first = Some((load, base));
        rows.push(row(lab, load, name, cell, base));
    }
    Table {
        header: header(),
        rows,
    }
}
