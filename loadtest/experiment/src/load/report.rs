// SPDX-License-Identifier: Apache-2.0
//! The run as one HTML file.

use weir_replay::scenario::Timed;
use weir_report::{Axis, BarRow, Bars, Plot, Report, Series, Style, VerticalMark};

use crate::load::Run;
use crate::load::stage::HOSTS;
use crate::load::table::table;
use crate::load::tried::Tried;
use crate::sampler::Sample;
use crate::sampler::over_time::{LOW, admitted, mean, of_each};

pub(super) fn page(run: &Run, ways: &[Tried]) -> Report {
    let mut page = Report::new(
        format!("Load: {}", run.plan.scenario),
        format!("Weir under k6, run on {}", run.origin.date()),
    );
    page.note(
        "EMULATED hosts: a job sleeps for its time instead of computing, so what the hosts can do is known exactly and \
         durations are of queues and choices, not of real work. k6, Envoy, weir-control and every request between them \
         are real.",
    );
    let busy: Vec<&str> = ways
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
    page.table(&table(ways));
    page.text(
        "Success: a good answer within the deadline. Durations are of these, from the moment when a request was due. \
         Goodput: what good answers needed of the cores, over what the cores could do in the stage. Nothing is tried again.",
    );
    page.heading("Objectives");
    for tried in ways {
        page.text(&format!("{}:", tried.way));
        page.list(&tried.lines());
    }
    bars(&mut page, run, ways);
    over_time(&mut page, run, ways);
    page.heading("What was run");
    let mut facts = run.origin.facts();
    let parameters = |tried: &Tried| (tried.way.clone(), tried.parameters.clone());
    facts.extend(ways.iter().map(parameters));
    page.facts(&facts);
    page.heading("Run it again");
    page.command(&run.origin.command);
    page
}

/// A group of bars for each stage, a bar for each way.
fn bars(page: &mut Report, run: &Run, ways: &[Tried]) {
    let names: Vec<String> = ways.iter().map(|tried| tried.way.clone()).collect();
    let group = |stage: &str, value: &dyn Fn(&Tried) -> f64| BarRow {
        label: stage.to_owned(),
        values: ways.iter().map(value).collect(),
    };
    let all = |title: String, label: &str, value: &dyn Fn(&Tried, &str) -> f64| Bars {
        title,
        label: label.to_owned(),
        series: names.clone(),
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

fn over_time(page: &mut Report, run: &Run, ways: &[Tried]) {
    page.heading("Over time");
    let mark = |stage: &Timed| VerticalMark {
        x: stage.from_s,
        label: stage.name.clone(),
    };
    let plot = |title: &str, y: Axis, series: Vec<Series>, caption: &str| Plot {
        title: title.to_owned(),
        x: Axis::linear("time / s").range(0.0, run.plan.length()),
        y,
        series,
        marks: run.plan.stages.iter().map(mark).collect(),
        caption: caption.to_owned(),
    };
    let waiting = series(ways, Sample::queued);
    let hosts = Axis::log_from_zero("mean of the hosts");
    let caption = "Looked at twice a second.";
    page.plot(&plot(
        "Requests that wait for a core",
        hosts,
        waiting,
        caption,
    ));
    let levels = series(ways, |sample| admitted(sample, LOW));
    let mut points = levels.iter().flat_map(|series| &series.points);
    if points.any(|(_, value)| value.is_finite()) {
        let hosts = Axis::linear("mean of the hosts / %").range(0.0, 100.0);
        let caption = "What the levels let through; only weir-control sets some.";
        page.plot(&plot("Admitted of low priority", hosts, levels, caption));
    }
}

/// A line for each way: the mean of the hosts at each look.
fn series(ways: &[Tried], value: impl Fn(&Sample) -> f64) -> Vec<Series> {
    let series = |tried: &Tried| Series {
        name: tried.way.clone(),
        points: mean(&of_each(&tried.samples, HOSTS, &value)),
        style: Style::Line,
    };
    ways.iter().map(series).collect()
}
