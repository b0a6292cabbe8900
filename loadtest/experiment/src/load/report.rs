// SPDX-License-Identifier: Apache-2.0
//! The run as one HTML file.

use std::path::{Path, PathBuf};

use anyhow::Result;
use weir_report::{Axis, BarRow, Bars, Plot, Report, Series, Style, Table, VerticalMark};

use crate::demo::kept::date;
use crate::demo::sampler::samples::Sample;
use crate::demo::table::milliseconds;
use crate::load::figures::Row;
use crate::load::kept::{Run, Tried, share};

/// Ranks of a class: user priorities in `weir-policy`.
const USERS: f64 = 128.0;
/// Of `low`, in weir-worker and the filter.
const LOW: f64 = 16.0;

/// What was seen of the hosts while each way was loaded, in the order of the run's ways.
pub(super) fn write(run: &Run, samples: &[Vec<Sample>], folder: &Path) -> Result<PathBuf> {
    let file = folder.join("report.html");
    page(run, samples).write(&file)?;
    Ok(file)
}

fn page(run: &Run, samples: &[Vec<Sample>]) -> Report {
    let mut page = Report::new(
        format!("Load: {}", run.plan.scenario),
        format!("Weir under k6, run on {}", date(run.begun)),
    );
    page.note(
        "EMULATED hosts: a job sleeps for its time instead of computing, so what the hosts can do is known exactly and \
         durations are of queues and choices, not of real work. k6, Envoy, weir-control and every request between them \
         are real.",
    );
    let busy: Vec<&str> = run
        .ways
        .iter()
        .filter(|way| way.too_busy())
        .map(|way| &*way.way)
        .collect();
    if !busy.is_empty() {
        page.note(&format!(
            "TOO BUSY with {}: k6 was behind or the machine's cores had no time left. Run it again when nothing else runs.",
            busy.join(", ")
        ));
    }
    page.text(&run.plan.objective);
    page.table(&table(run));
    page.text(
        "Success: a good answer within the deadline. Durations are of these, from the moment when a request was due. \
         Goodput: what good answers needed of the cores, over what the cores could do in the stage. Nothing is tried again.",
    );
    page.heading("Objectives");
    for tried in &run.ways {
        page.text(&format!("{}:", tried.way));
        let lines = tried.verdicts.iter().map(|verdict| verdict.line.clone());
        page.list(&lines.chain([tried.sender()]).collect::<Vec<_>>());
    }
    bars(&mut page, run);
    over_time(&mut page, run, samples);
    page.heading("What was run");
    let mut facts: Vec<(String, String)> = run
        .header
        .lines()
        .filter_map(|line| line.split_once(':'))
        .map(|(name, text)| (name.trim().to_owned(), text.trim().to_owned()))
        .collect();
    facts.extend(run.versions.iter().cloned());
    let ways = run.ways.iter();
    facts.extend(ways.map(|tried| (tried.way.clone(), tried.parameters.clone())));
    page.facts(&facts);
    page.heading("Run it again");
    page.command(&run.command);
    page
}

fn table(run: &Run) -> Table {
    let header = [
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
    let row = |tried: &Tried, row: &Row| {
        let outcome = |name: &str| row.outcome(name).to_string();
        let goodput = tried.figures.goodput.get(&row.stage);
        vec![
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
    };
    let rows = run.ways.iter().flat_map(|tried| {
        let rows = tried.figures.by_priority();
        rows.map(move |of| row(tried, of))
    });
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

/// A group of bars for each stage, a bar for each way.
fn bars(page: &mut Report, run: &Run) {
    let ways: Vec<String> = run.ways.iter().map(|tried| tried.way.clone()).collect();
    let group = |stage: &str, value: &dyn Fn(&Tried) -> f64| BarRow {
        label: stage.to_owned(),
        values: run.ways.iter().map(value).collect(),
    };
    let all = |title: String, label: &str, value: &dyn Fn(&Tried, &str) -> f64| Bars {
        title,
        label: label.to_owned(),
        series: ways.clone(),
        rows: run
            .plan
            .measured()
            .map(|stage| group(&stage.name, &|tried| value(tried, &stage.name)))
            .collect(),
        caption: String::new(),
    };
    for priority in &run.plan.priorities {
        let success = |tried: &Tried, stage: &str| {
            let row = tried.figures.row(stage, Some(priority));
            row.map_or(f64::NAN, |row| 100.0 * row.success)
        };
        page.bars(&all(
            format!("Success, {priority}"),
            "good answers in time / %",
            &success,
        ));
    }
    let goodput = |tried: &Tried, stage: &str| {
        let share = tried.figures.goodput.get(stage);
        share.map_or(f64::NAN, |share| 100.0 * share)
    };
    page.bars(&all(
        "Goodput".to_owned(),
        "of what the hosts can do / %",
        &goodput,
    ));
}

fn over_time(page: &mut Report, run: &Run, samples: &[Vec<Sample>]) {
    page.heading("Over time");
    let end = run.plan.length();
    let marks = || {
        let mark = |stage: &crate::load::plan::Stage| VerticalMark {
            x: stage.from_s,
            label: stage.name.clone(),
        };
        run.plan.stages.iter().map(mark).collect()
    };
    let series = |value: &dyn Fn(&Sample) -> f64| -> Vec<Series> {
        let ways = run.ways.iter().zip(samples);
        let of = |(tried, samples): (&Tried, &Vec<Sample>)| Series {
            name: tried.way.clone(),
            points: looks(samples, value),
            style: Style::Line,
        };
        ways.map(of).collect()
    };
    let waiting = |sample: &Sample| sample.load.as_ref().map_or(f64::NAN, |load| load.queued);
    page.plot(&Plot {
        title: "Requests that wait for a core".to_owned(),
        x: Axis::linear("time / s").range(0.0, end),
        y: Axis::log_from_zero("mean of the hosts"),
        series: series(&waiting),
        marks: marks(),
        caption: "Looked at twice a second.".to_owned(),
    });
    let admitted = |sample: &Sample| {
        sample.level.map_or(f64::NAN, |level| {
            100.0 * ((f64::from(level) - LOW * USERS) / USERS).clamp(0.0, 1.0)
        })
    };
    let levels = series(&admitted);
    if levels
        .iter()
        .any(|series| series.points.iter().any(|(_, value)| value.is_finite()))
    {
        page.plot(&Plot {
            title: "Admitted of low priority".to_owned(),
            x: Axis::linear("time / s").range(0.0, end),
            y: Axis::linear("mean of the hosts / %").range(0.0, 100.0),
            series: levels,
            marks: marks(),
            caption: "What the levels let through; only weir-control sets some.".to_owned(),
        });
    }
}

/// The mean of the hosts at each look; hosts are looked at one after another.
fn looks(samples: &[Sample], value: &dyn Fn(&Sample) -> f64) -> Vec<(f64, f64)> {
    let starts = samples
        .iter()
        .enumerate()
        .filter(|(_, sample)| sample.host == 0);
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([samples.len()]);
    let look = |(from, to): (&usize, usize)| {
        let look = &samples[*from..to];
        let values: Vec<f64> = look
            .iter()
            .map(value)
            .filter(|value| value.is_finite())
            .collect();
        (look[0].at, values.iter().sum::<f64>() / values.len() as f64)
    };
    starts.iter().zip(ends).map(look).collect()
}
