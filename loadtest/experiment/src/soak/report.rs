// SPDX-License-Identifier: Apache-2.0
//! The run as a page.

use std::collections::BTreeSet;

use weir_report::{Axis, Plot, Report, Series, Style, Table, VerticalMark};

use crate::soak::outcome::Outcome;
use crate::soak::samples::What;
use crate::soak::stage::CONTROL;

pub(crate) fn of(outcome: &Outcome) -> Report {
    let minutes = outcome.plan.length.as_secs_f64() / 60.0;
    let mut report = Report::new(
        "Soak",
        format!(
            "{minutes:.0} minutes under a steady load while hosts (EMULATED), keys, tables, VMs and callers come and go"
        ),
    );
    report.table(&verdicts(outcome));
    if let Some(busy) = outcome.busy {
        let busy = format!(
            "{:.0} % of the machine's cores, by everybody on it",
            busy * 100.0
        );
        report.facts(&[("busy", &busy)]);
    }
    let stays = stays(outcome);
    for what in What::ALL {
        let series = stays.iter().map(|who| Series {
            name: who.clone(),
            points: minutes_of(outcome.series(who, what)),
            style: Style::Line,
        });
        let series: Vec<_> = series.filter(|series| !series.points.is_empty()).collect();
        if series.is_empty() {
            continue;
        }
        report.plot(&Plot {
            title: what.name().to_owned(),
            x: Axis::linear("minutes"),
            y: Axis::linear(what.name()),
            series,
            marks: marks(outcome),
            caption: String::new(),
        });
    }
    report.fold("All that was sent and done", |report| {
        report.text(&format!("{:?}\n\n{:?}", outcome.sent, outcome.done));
    });
    report
}

/// Who is in the first sample stays.
fn stays(outcome: &Outcome) -> Vec<String> {
    let first = outcome.samples.first().map(|(_, sample)| sample);
    let names: BTreeSet<&String> = first.into_iter().flat_map(|sample| sample.keys()).collect();
    let mut names: Vec<String> = names.into_iter().cloned().collect();
    // weir-control first: it is what this is about.
    names.sort_by_key(|name| name != CONTROL);
    names
}

fn marks(outcome: &Outcome) -> Vec<VerticalMark> {
    let half = VerticalMark {
        x: outcome.plan.length.as_secs_f64() / 120.0,
        label: "judged from here".to_owned(),
    };
    Vec::from_iter(outcome.plan.judged.then_some(half))
}

fn minutes_of(points: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let minutes = |(seconds, value): (f64, f64)| (seconds / 60.0, value);
    points.into_iter().map(minutes).collect()
}

fn verdicts(outcome: &Outcome) -> Table {
    let header = ["what", "seen", "verdict"].map(str::to_owned).to_vec();
    let row = |verdict: &crate::soak::verdict::Verdict| {
        let word = if verdict.holds { "holds" } else { "FAILS" };
        vec![verdict.what.clone(), verdict.seen.clone(), word.to_owned()]
    };
    Table {
        header,
        rows: outcome.verdicts.iter().map(row).collect(),
    }
}
