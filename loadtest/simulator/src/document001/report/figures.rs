// SPDX-License-Identifier: Apache-2.0
//! Figures 4 to 15. Those of means and percentiles have the published values beside the simulated ones;
//! of figures 14 and 15 the text gives hours and shapes, which the captions name.

use std::time::Duration;

use weir_report::{Axis, BarRow, Bars, Figure, Panels, Plot, Report, Series, Strip, Strips, Style};

use super::{Made, Outcome, PRIORITIES, Quantity};
use crate::document001::Experiment;
use crate::document001::history::Change;
use crate::document001::published::{COLUMNS, MOST_COLUMN};
use crate::tally::Tally;

/// A bar of figure 14.
const STRETCH: Duration = Duration::from_secs(600);
/// Figure 15 shows so long.
const WINDOW: Duration = Duration::from_secs(50 * 60);

/// All figures, onto a page.
pub fn add_figures(report: &mut Report, outcomes: &[Outcome], made: Made) {
    // Each quantity has three figures: of means, and of percentiles by priority.
    for ((quantity, _, name), figure) in Quantity::ALL.into_iter().zip([4, 7, 11]) {
        report.heading(&format!("Figures {figure} to {}: {name}", figure + 2));
        let both = [0, 1].map(|priority| {
            let title = format!("Figure {figure}: mean, priority {}", PRIORITIES[priority]);
            Figure::Bars(bars(outcomes, made, quantity, priority, 0, title, name))
        });
        report.panels(&Panels {
            title: format!("Figure {figure}"),
            figures: both.to_vec(),
            ..Panels::default()
        });
        for (priority, of) in PRIORITIES.into_iter().enumerate() {
            let number = figure + 1 + priority;
            let figures = (1..MOST_COLUMN).map(|column| {
                let title = format!("{}, priority {of}", COLUMNS[column]);
                Figure::Bars(bars(
                    outcomes, made, quantity, priority, column, title, name,
                ))
            });
            report.panels(&Panels {
                title: format!("Figure {number}"),
                figures: figures.collect(),
                ..Panels::default()
            });
        }
        if quantity == Quantity::Wait {
            report.plot(&variances(outcomes, made));
        }
    }
    let find = |wanted| outcomes.iter().find(|one| one.experiment == wanted);
    if let Some(tally) = find(Experiment::BaselineBaseline).and_then(|one| one.tallies.first()) {
        report.heading("Figure 14: availability, Baseline, baseline");
        report.strips(&availability(tally, made));
    }
    if let Some(tally) = find(Experiment::DagorBaseline).and_then(|one| one.tallies.first()) {
        report.heading("Figure 15: DAGOR threshold over time, DAGOR, baseline");
        report.plot(&levels(tally, made));
    }
}

fn bars(
    outcomes: &[Outcome],
    made: Made,
    quantity: Quantity,
    priority: usize,
    column: usize,
    title: String,
    label: &str,
) -> Bars {
    let row = |outcome: &Outcome| BarRow {
        label: outcome.name().to_owned(),
        values: vec![
            outcome.column(quantity, priority, column).0,
            outcome.published(quantity, priority)[column],
        ],
    };
    Bars {
        title,
        label: label.to_owned(),
        series: vec![made.to_string(), "published".to_owned()],
        rows: outcomes.iter().map(row).collect(),
        caption: String::new(),
    }
}

fn variances(outcomes: &[Outcome], made: Made) -> Plot {
    let series = |name: &str, shift: f64, of: &dyn Fn(&Outcome) -> Vec<f64>| {
        let points = outcomes.iter().zip(1..).flat_map(|(outcome, number)| {
            let x = f64::from(number) + shift;
            of(outcome).into_iter().map(move |variance| (x, variance))
        });
        Series {
            name: name.to_owned(),
            points: points.collect(),
            style: Style::Points,
        }
    };
    let ours = |outcome: &Outcome| {
        let first = outcome.tallies.first().map(Tally::variances);
        first.map(|(_, each)| each).unwrap_or_default()
    };
    let published = |outcome: &Outcome| {
        let spread = outcome.spread();
        spread
            .map(|spread| spread.variances.to_vec())
            .unwrap_or_default()
    };
    let names = outcomes
        .iter()
        .zip(1..)
        .map(|(one, n)| format!("{n}: {}", one.name()));
    Plot {
        title: "Figure 10: variance of low waits of each server".to_owned(),
        x: Axis::linear("run").range(0.5, outcomes.len() as f64 + 0.5),
        y: Axis::log("variance / s²"),
        series: vec![
            series(&format!("{made}, first seed"), -0.12, &ours),
            series("published", 0.12, &published),
        ],
        caption: names.collect::<Vec<_>>().join(" · "),
        ..Plot::default()
    }
}

fn availability(tally: &Tally, made: Made) -> Strips {
    let ends = Duration::from_secs_f64(tally.hours * 3600.0);
    let stretches = (ends.as_secs_f64() / STRETCH.as_secs_f64()).ceil() as u32;
    let strip = |server: usize| Strip {
        label: format!("server {server}"),
        values: (0..stretches)
            .map(|n| {
                let (from, to) = (STRETCH * n, STRETCH * (n + 1));
                let overloaded = |change: &Change| change.overloaded || !change.up;
                100.0 * tally.history.share(server, from, to, overloaded)
            })
            .collect(),
    };
    Strips {
        title: "How long a server was down or had more than 100 stalled joblets".to_owned(),
        x: Axis::linear("time / h").range(0.0, (STRETCH * stretches).as_secs_f64() / 3600.0),
        rows: (0..tally.history.hosts().len()).map(strip).collect(),
        steps: vec![1.0, 25.0, 50.0, 75.0],
        unit: "% of ten minutes".to_owned(),
        caption: format!(
            "{made}, first seed. Published: the worst server was overloaded for more than 12 hours, the next for more \
             than 9, the others for short times (section 10.5.1)."
        ),
    }
}

fn levels(tally: &Tally, made: Made) -> Plot {
    let from = tally.history.liveliest(WINDOW);
    let to = from + WINDOW;
    let mut servers: Vec<_> = tally.history.hosts().iter().enumerate().collect();
    let changes = |changes: &[Change]| {
        changes
            .iter()
            .filter(|change| (from..to).contains(&change.at))
            .count()
    };
    servers.sort_by_key(|(_, of)| std::cmp::Reverse(changes(of)));
    let series = |(server, changes): (usize, &Vec<Change>)| {
        let minutes = |at: Duration| at.saturating_sub(from).as_secs_f64() / 60.0;
        let before = changes.iter().rfind(|change| change.at <= from);
        let within = changes
            .iter()
            .filter(|change| (from..to).contains(&change.at));
        let mut points: Vec<_> = before
            .into_iter()
            .chain(within)
            .map(|change| (minutes(change.at), f64::from(change.level)))
            .collect();
        if let Some((_, last)) = points.last().copied() {
            points.push((minutes(to), last));
        }
        Series {
            name: format!("server {server}"),
            points,
            style: Style::Step,
        }
    };
    Plot {
        title: "The four servers and the 50 minutes with most changes".to_owned(),
        x: Axis::linear(format!(
            "minutes after {:.1} h",
            from.as_secs_f64() / 3600.0
        )),
        y: Axis::linear("ranks admitted").range(0.0, 4096.0),
        series: servers.into_iter().take(4).map(series).collect(),
        caption: format!(
            "{made}, first seed. Published: one server lowers its threshold once for a short time, three close and \
             then change quickly between open and closed (section 10.5.2)."
        ),
        ..Plot::default()
    }
}
