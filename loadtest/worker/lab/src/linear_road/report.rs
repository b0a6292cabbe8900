// SPDX-License-Identifier: Apache-2.0
//! The table and the page.

use weir_report::{Axis, Plot, Report as Page, Series, Style, Table};

use super::reference::Found;
use super::traffic::Report;
use super::{Args, Row};
use crate::course::Course;
use crate::orders::plan::{BEST, Figure};

const READING: &str = "\
Cars on half a highway report where they are; the workflow finds accidents, keeps statistics of segments over five minutes, \
and tells each car that comes into a segment its toll. Every run found the same tolls and balances as a sequential \
reference. The response time is from a report to the end of its toll notification. A run thrashes from the moment after \
which the mean response of a sixtieth of the run is never again below 20 times that of the median one in its first half. \
Times of actors are MODELLED, so that a core does --capacity reports a second: document 003 prints none.";

pub(super) fn markdown(args: &Args, found: &Found, reports: &[Report], rows: &[Row]) -> String {
    let about = about(args, found, reports);
    let mut text = format!("{about}\n\n{}", table(args, rows).markdown());
    text += "\nMean response by tenth of the run / ms, SIMULATED:\n\n";
    text += &tenths(rows, |row| Some(&row.simulated)).markdown();
    if args.real {
        text += "\nThe same with real threads and EMULATED work:\n\n";
        text += &tenths(rows, |row| row.real.as_ref()).markdown();
    }
    text
}

/// Figures 31 to 33 in numbers.
fn tenths<'a>(rows: &'a [Row], course: impl Fn(&'a Row) -> Option<&'a Course>) -> Table {
    let mut header = vec!["order".to_owned()];
    header.extend((1..=10).map(|tenth| tenth.to_string()));
    let cells = |row: &'a Row| {
        let windows = course(row).map_or(&[][..], |course| &course.windows);
        let mean = |part: &[(f64, f64)]| {
            let sum: f64 = part.iter().map(|(_, mean)| mean).sum();
            format!("{:.0}", sum / part.len() as f64 * 1e3)
        };
        let mut cells = vec![row.plan.name.to_owned()];
        cells.extend(windows.chunks(6).map(mean));
        cells
    };
    Table {
        header,
        rows: rows.iter().map(cells).collect(),
    }
}

pub(super) fn page(args: &Args, found: &Found, reports: &[Report], rows: &[Row]) -> Page {
    let mut page = Page::new(
        "Linear Road under a rising rate",
        about(args, found, reports),
    );
    page.text(READING);
    page.table(&table(args, rows));
    let real = if args.real { " --real" } else { "" };
    page.command(&format!(
        "cargo xtask lab linear-road --seconds {} --top-rate {} --capacity {} --source-batch {} --seed {}{real}",
        args.seconds, args.top_rate, args.capacity, args.source_batch, args.seed
    ));
    page.plot(&Plot {
        title: "Input rate".to_owned(),
        x: Axis::linear("time / s").range(0.0, args.seconds as f64),
        y: Axis::linear("reports / (1/s)").range(0.0, args.top_rate),
        series: vec![Series {
            name: "reports".to_owned(),
            points: input_rate(args, reports),
            style: Style::Line,
        }],
        ..Plot::default()
    });
    page.heading("SIMULATED");
    figures(&mut page, args, rows, |row| Some(&row.simulated));
    if args.real {
        page.heading("Real threads, EMULATED work");
        figures(&mut page, args, rows, |row| row.real.as_ref());
    }
    page
}

fn about(args: &Args, found: &Found, reports: &[Report]) -> String {
    let charged = found.tolls.iter().filter(|toll| toll.toll > 0).count();
    let accidents = found.tolls.iter().filter(|toll| toll.accident).count();
    format!(
        "0 to {} reports a second within {} s on 1 core that does {}: {} reports, {} toll notifications ({charged} with \
         a toll, {accidents} with an accident ahead), {} balances.",
        args.top_rate,
        args.seconds,
        args.capacity,
        reports.len(),
        found.tolls.len(),
        found.balances.len(),
    )
}

fn table(args: &Args, rows: &[Row]) -> Table {
    let columns = |clock: &str| {
        [
            format!("thrashes at, {clock} / (reports/s)"),
            format!("second, {clock}"),
            format!("mean below half the rate, {clock} / ms"),
            format!("mean at 70–75 % of it, {clock} / ms"),
            format!("mean, {clock} / s"),
        ]
    };
    let mut header = vec!["order".to_owned()];
    header.extend(columns("SIMULATED"));
    if args.real {
        header.extend(columns("real"));
    }
    header.push("document 003 / (reports/s)".to_owned());
    Table {
        header,
        rows: rows.iter().map(|row| cells(args, row)).collect(),
    }
}

fn cells(args: &Args, row: &Row) -> Vec<String> {
    let rate = |rate: Option<f64>| rate.map_or("–".to_owned(), |rate| format!("{rate:.0}"));
    let second = |rate: f64| rate / args.top_rate * args.seconds as f64;
    let of = |course: &Course| {
        [
            rate(course.thrash_rate),
            rate(course.thrash_rate.map(second)),
            format!("{:.1}", course.mean_below_half * 1e3),
            format!("{:.1}", course.mean_busy * 1e3),
            format!("{:.2}", course.mean),
        ]
    };
    let mut cells = vec![row.plan.name.to_owned()];
    cells.extend(of(&row.simulated));
    cells.extend(row.real.iter().flat_map(of));
    cells.push(rate(row.plan.reported));
    cells
}

/// Reports a second in each sixtieth of the run.
fn input_rate(args: &Args, reports: &[Report]) -> Vec<(f64, f64)> {
    let width = args.seconds as f64 / 60.0;
    let in_window = |window: usize| {
        let of = |report: &&Report| (report.at.as_secs_f64() / width) as usize == window;
        reports.iter().filter(of).count() as f64 / width
    };
    let point = |window: usize| ((window as f64 + 0.5) * width, in_window(window));
    (0..60).map(point).collect()
}

/// Document 003's figures 31 to 33.
fn figures<'a>(
    page: &mut Page,
    args: &Args,
    rows: &'a [Row],
    course: impl Fn(&'a Row) -> Option<&'a Course>,
) {
    let of = |figure: Figure| move |row: &&Row| row.plan.figure == figure;
    let titled = "Response time at TollNotification";
    let all: [(String, Vec<&Row>); 3] = [
        (
            format!("{titled}, RR by quantum / µs (figure 31)"),
            rows.iter().filter(of(Figure::RoundRobin)).collect(),
        ),
        (
            format!("{titled}, QBS by basic quantum / µs (figure 32)"),
            rows.iter().filter(of(Figure::Quantum)).collect(),
        ),
        (
            format!("{titled}, all (figure 33)"),
            rows.iter()
                .filter(|row| BEST.contains(&row.plan.name))
                .collect(),
        ),
    ];
    for (title, rows) in all {
        let series = rows.into_iter().filter_map(|row| {
            Some(Series {
                name: row.plan.name.to_owned(),
                points: course(row)?.windows.clone(),
                style: Style::Line,
            })
        });
        page.plot(&Plot {
            title,
            x: Axis::linear("time / s").range(0.0, args.seconds as f64),
            y: Axis::linear("mean response / s").range(0.0, 10.0),
            series: series.collect(),
            ..Plot::default()
        });
    }
}
