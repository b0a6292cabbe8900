// SPDX-License-Identifier: Apache-2.0
//! The report.

use weir_report::{
    Axis, BarRow, Bars, Figure, Heat, HeatRow, Panels, Plot, Report, Series, Style, VerticalMark,
};

use crate::experiments::cell::Setting;
use crate::experiments::grid::{CALLERS, FEW_CALLERS, Grid, POLLS, varied_policies};
use crate::experiments::outcome::{Outcome, Outcomes};
use crate::experiments::policies::{CLAIRVOYANT, Policy, Role};
use crate::experiments::tables::{self, EXPLANATION, Priority};
use crate::experiments::workloads::Workload;

/// The same outcomes give the same page.
pub(super) fn page(grid: &Grid, outcomes: &Outcomes, document001: &str, command: &str) -> Report {
    let mut page = Report::new(
        "Every policy on every workload, SIMULATED",
        format!("{} simulations, {}", grid.cells.len(), grid.seeds()),
    );
    page.note("SIMULATED: nothing on this page was measured on a real fleet.");
    page.command(command);
    page.fold("What the figures are", |page| {
        page.list(&EXPLANATION.map(str::to_owned));
    });
    for workload in &grid.workloads {
        add(&mut page, workload, outcomes);
    }
    page.heading("Beside what document 001 published");
    page.fold("SIMULATED and published figures", |page| {
        page.command(document001.trim_end())
    });
    page
}

fn add(page: &mut Report, workload: &'static Workload, outcomes: &Outcomes) {
    page.heading(&format!("{}, SIMULATED", workload.title));
    page.text(workload.about);
    page.panels(&Panels {
        title: "Mean all-in figures of each policy".to_owned(),
        figures: vec![
            Figure::Bars(bars(workload, outcomes, "duration / s", |o, p| {
                p.of(o).duration_s.mean
            })),
            Figure::Bars(bars(workload, outcomes, "wait / s", |o, p| {
                p.of(o).wait_s.mean
            })),
        ],
        caption: "Shorter is better; the clairvoyant and the central queue are bounds.".to_owned(),
    });
    page.plot(&waits(workload, outcomes));
    page.plot(&by_callers(workload, outcomes));
    page.fold("Tables", |page| {
        for priority in [Priority::Low, Priority::High] {
            page.text(&format!("Priority {}", priority.name()));
            page.table(&tables::compared(workload, outcomes, priority));
        }
        page.text("Both priorities");
        page.table(&tables::fleet(workload, outcomes));
        page.text("By callers");
        page.table(&tables::by_callers(workload, outcomes));
    });
    let troubles = tables::troubles(workload, outcomes);
    if !troubles.rows.is_empty() {
        page.text("Hosts in trouble from the middle on");
        page.table(&troubles);
    }
    if let Some(heat) = heat(workload, outcomes) {
        page.panels(&heat);
        page.fold("Callers and staleness in figures", |page| {
            for policy in varied_policies() {
                page.text(policy.name);
                page.table(&tables::sharing(workload, policy, outcomes));
            }
        });
    }
}

fn bars(
    workload: &'static Workload,
    outcomes: &Outcomes,
    label: &str,
    figure: impl Fn(&Outcome, Priority) -> f64,
) -> Bars {
    let row = |policy: &'static Policy| {
        let setting = Setting::plain(workload, policy);
        let value = |priority| {
            let spread = outcomes.spread(&setting, |outcome| figure(outcome, priority));
            spread.map_or(f64::NAN, |spread| spread.mean)
        };
        BarRow {
            label: policy.name.to_owned(),
            values: vec![value(Priority::High), value(Priority::Low)],
        }
    };
    Bars {
        title: String::new(),
        label: label.to_owned(),
        series: ["high", "low"].map(str::to_owned).to_vec(),
        rows: tables::played(workload).map(row).collect(),
        caption: String::new(),
    }
}

/// The upper half of the distribution of low waits.
fn waits(workload: &'static Workload, outcomes: &Outcomes) -> Plot {
    let points = |policy: &'static Policy| {
        let setting = Setting::plain(workload, policy);
        let at = |figure: fn(&Outcome) -> f64, share: f64| {
            let spread = outcomes.spread(&setting, figure);
            spread.map(|spread| (spread.mean, share))
        };
        let points = [
            at(|o| o.low.wait_s.p50, 50.0),
            at(|o| o.low.wait_s.p90, 90.0),
            at(|o| o.low.wait_s.p95, 95.0),
            at(|o| o.low.wait_s.p99, 99.0),
        ];
        points.into_iter().flatten().collect::<Vec<_>>()
    };
    let shown = |policy: &&Policy| policy.role != Role::Compared || policy.name == "baseline";
    let series = tables::played(workload).filter(shown).map(|policy| Series {
        name: policy.name.to_owned(),
        points: points(policy),
        style: Style::Line,
    });
    let clairvoyant = tables::named(CLAIRVOYANT).and_then(|policy| points(policy).last().copied());
    Plot {
        title: "All-in wait of priority low: half of the requests and up".to_owned(),
        x: Axis::log("wait / s"),
        y: Axis::linear("share of requests / %").range(50.0, 100.0),
        series: series.collect(),
        marks: clairvoyant
            .into_iter()
            .map(|(x, _)| VerticalMark {
                x,
                label: "clairvoyant's p99".to_owned(),
            })
            .collect(),
        caption: "Further left is better. Joined are the 50th, 90th, 95th and 99th percentile."
            .to_owned(),
    }
}

/// What more callers cost.
fn by_callers(workload: &'static Workload, outcomes: &Outcomes) -> Plot {
    let points = |policy: &'static Policy| {
        let point = |callers| {
            let setting = Setting {
                callers,
                ..Setting::plain(workload, policy)
            };
            let wait = outcomes.spread(&setting, |o| o.low.wait_s.mean);
            wait.map(|wait| (f64::from(callers), wait.mean))
        };
        CALLERS.into_iter().filter_map(point).collect::<Vec<_>>()
    };
    let series = varied_policies().map(|policy| Series {
        name: policy.name.to_owned(),
        points: points(policy),
        style: Style::Line,
    });
    Plot {
        title: "Mean all-in wait of priority low by callers".to_owned(),
        x: Axis::log("callers"),
        y: Axis::log("wait / s"),
        series: series.collect(),
        marks: Vec::new(),
        caption: "Lower is better, and level is best: as if there were one caller.".to_owned(),
    }
}

/// Mean low waits by callers and staleness, in shares of the largest.
fn heat(workload: &'static Workload, outcomes: &Outcomes) -> Option<Panels> {
    let all = varied_policies().flat_map(|policy| {
        staleness().flat_map(move |(poll, orca)| low_waits(workload, policy, poll, orca, outcomes))
    });
    let seen: Vec<f64> = all.filter(|wait| wait.is_finite()).collect();
    // One that is there anyway shows nothing.
    if seen.len() <= varied_policies().count() {
        return None;
    }
    let largest = seen.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
    let figure = |policy: &'static Policy| {
        let rows = staleness().map(|(poll, orca)| HeatRow {
            label: match orca {
                true => format!("{poll}, load on answers"),
                false => format!("{poll}, polls only"),
            },
            shares: low_waits(workload, policy, poll, orca, outcomes)
                .map(|wait| wait / largest)
                .to_vec(),
        });
        let header = ["staleness", "1 caller", "8 callers", "64 callers"];
        Figure::Heat(Heat {
            title: policy.name.to_owned(),
            header: header.map(str::to_owned).to_vec(),
            rows: rows
                .filter(|row| row.shares.iter().any(|share| share.is_finite()))
                .collect(),
            caption: String::new(),
        })
    };
    Some(Panels {
        title: "Mean low wait by callers and staleness".to_owned(),
        figures: varied_policies().map(figure).collect(),
        caption: format!("In per cent of the largest, {largest:.3} s."),
    })
}

/// Times between polls, and whether answers carry the load.
fn staleness() -> impl Iterator<Item = (&'static str, bool)> {
    [true, false]
        .into_iter()
        .flat_map(|orca| POLLS.map(|poll| (poll, orca)))
}

/// Mean low waits for each number of callers; not a number where it was not simulated.
fn low_waits(
    workload: &'static Workload,
    policy: &'static Policy,
    poll: &'static str,
    orca: bool,
    outcomes: &Outcomes,
) -> [f64; FEW_CALLERS.len()] {
    FEW_CALLERS.map(|callers| {
        let setting = Setting {
            callers,
            poll,
            orca,
            ..Setting::plain(workload, policy)
        };
        outcomes
            .spread(&setting, |o| o.low.wait_s.mean)
            .map_or(f64::NAN, |spread| spread.mean)
    })
}
