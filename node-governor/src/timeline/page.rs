// SPDX-License-Identifier: Apache-2.0
//! The page: figures as those of document 004 (*Cloud Computing Architecture*, semester project report, part 4),
//! which has p95 and the service's number of cores over time and says when each job starts and is paused. What the
//! service uses stands where that report has its load, which a governor does not know.

use std::io;
use std::path::Path;

use weir_report::{
    Axis, Figure, Kind, Lane, Lanes, Plot, Report, Scale, Series, Stack, Stretch, Style,
    VerticalMark,
};

use super::coarse::{self, Coarse};
use super::history::{History, Job};
use super::tables;
use crate::jobs::State;
use crate::root::core_list;

/// Sets of cores that have a colour of their own; with all others and the mesh these are seven.
const SETS: usize = 5;
/// More starts than these would hide the lines.
const MARKS: usize = 12;
/// Above the last core, so that its line is seen.
const ROOM: f64 = 1.1;
/// Latencies that spread wider than this are drawn by their logarithm.
const SPREAD: f64 = 20.0;

/// One HTML file, of what is in this folder. Takes as long as reading some tens of megabytes.
pub fn html(folder: &Path) -> io::Result<String> {
    let history = History::read(folder)?;
    let mut report = Report::new("Cores and jobs over time", tables::subtitle(&history));
    report.text(&tables::summary(&history));
    if history.bad > 0 {
        report.note(&format!(
            "Lines that cannot be read, and are left out: {}.",
            history.bad
        ));
    }
    report.stack(&stack(&history));
    report.heading("Jobs");
    report.table(&tables::jobs(&history));
    report.list(&tables::troubles(&history));
    report.heading("The service");
    report.facts(&tables::service(&history));
    Ok(report.html())
}

fn stack(history: &History) -> Stack {
    let time = Time::of(history.length);
    let mut figures = vec![Figure::Plot(cores(history, &time))];
    if !history.tail.is_empty() {
        figures.push(Figure::Plot(tail(history, &time)));
    }
    if !history.jobs.is_empty() {
        figures.push(Figure::Lanes(jobs(history, &time)));
    }
    Stack {
        figures,
        ..Stack::default()
    }
}

/// The unit that gives times of two or three digits.
struct Time {
    unit: f64,
    axis: Axis,
}

impl Time {
    fn of(length: f64) -> Self {
        let (unit, name) = match length {
            ..=900.0 => (1.0, "s"),
            ..=10_800.0 => (60.0, "min"),
            _ => (3600.0, "h"),
        };
        // One line alone has no length.
        let last = length.max(1e-3) / unit;
        Self {
            unit,
            axis: Axis::linear(format!("time / {name}")).range(0.0, last),
        }
    }

    fn points(&self, points: &[(f64, f64)]) -> Vec<(f64, f64)> {
        points
            .iter()
            .map(|(at, value)| (at / self.unit, *value))
            .collect()
    }
}

fn cores(history: &History, time: &Time) -> Plot {
    let all = core_list(&history.machine).map_or(1, |cores| cores.len().max(1));
    let points = history.cores.len().max(history.cpu.len());
    let (cores, cpu, caption) = match Coarse::of(history.length, points) {
        None => (history.cores.clone(), history.cpu.clone(), String::new()),
        Some(coarse) => (
            coarse.held(&history.cores),
            coarse.sampled(&history.cpu, coarse::mean),
            format!("Means of {} each.", tables::seconds(coarse.seconds)),
        ),
    };
    let mut lines = vec![series(
        "cores of the service",
        time.points(&cores),
        Style::Step,
    )];
    if !cpu.is_empty() {
        lines.push(series("its CPU use", time.points(&cpu), Style::Line));
    }
    let started = history
        .jobs
        .iter()
        .filter_map(|job| Some((job, job.started?)));
    let mark = |(job, at): (&Job, f64)| VerticalMark {
        x: at / time.unit,
        label: job.name.clone(),
    };
    let mut marks: Vec<VerticalMark> = started.map(mark).collect();
    if marks.len() > MARKS {
        marks.clear();
    }
    Plot {
        title: "Cores of the service, and when each job started".to_owned(),
        x: time.axis.clone(),
        y: Axis::linear("cores").range(0.0, ROOM * all as f64),
        series: lines,
        marks,
        caption,
    }
}

fn tail(history: &History, time: &Time) -> Plot {
    let samples = &history.tail;
    let end = history.length.max(1e-3) / time.unit;
    let target = history
        .target
        .map(|target| vec![(0.0, target), (end, target)]);
    let target = target.map(|points| series("target", points, Style::Line));
    let mut lines = Vec::new();
    let mut caption = String::new();
    if let Some(coarse) = Coarse::of(history.length, samples.len()) {
        let highest = coarse.sampled(samples, coarse::highest);
        let median = coarse.sampled(samples, coarse::median);
        lines.push(series(
            "tail latency, median",
            time.points(&median),
            Style::Line,
        ));
        lines.extend(target);
        lines.push(series(
            "tail latency, highest",
            time.points(&highest),
            Style::Line,
        ));
        caption = format!(
            "Of the samples of {} each.",
            tables::seconds(coarse.seconds)
        );
    } else {
        let points = time.points(samples);
        let over = |(_, ms): &(f64, f64)| history.target.is_some_and(|target| *ms > target);
        let over: Vec<(f64, f64)> = points.iter().copied().filter(over).collect();
        lines.push(series("tail latency", points, Style::Line));
        lines.extend(target);
        lines.extend((!over.is_empty()).then(|| series("over the target", over, Style::Points)));
    }
    Plot {
        title: "Tail latency of the service".to_owned(),
        x: time.axis.clone(),
        y: Axis {
            scale: scale(samples),
            ..Axis::linear("latency / ms")
        },
        series: lines,
        caption,
        ..Plot::default()
    }
}

fn series(name: &str, points: Vec<(f64, f64)>, style: Style) -> Series {
    Series {
        name: name.to_owned(),
        points,
        style,
    }
}

fn scale(samples: &[(f64, f64)]) -> Scale {
    let values = samples.iter().map(|(_, ms)| *ms).filter(|ms| *ms > 0.0);
    let mut sorted: Vec<f64> = values.collect();
    sorted.sort_unstable_by(f64::total_cmp);
    match sorted.last() {
        Some(most) if *most > SPREAD * coarse::median(&sorted) => Scale::Log,
        _ => Scale::Linear,
    }
}

fn jobs(history: &History, time: &Time) -> Lanes {
    let sets = Sets::of(history);
    let mut kinds: Vec<Kind> = sets.names.iter().map(|name| kind(name, false)).collect();
    let (paused, mesh) = (kinds.len(), kinds.len() + 1);
    kinds.extend([
        kind("paused", true),
        kind("the mesh refuses or is about to", false),
    ]);
    let mut rows: Vec<Lane> = history
        .jobs
        .iter()
        .map(|job| lane(job, &sets, paused, time))
        .collect();
    if !history.pressed.is_empty() {
        let stretch = |(from, to): &(f64, f64)| Stretch {
            from: from / time.unit,
            to: to / time.unit,
            kind: mesh,
        };
        rows.push(Lane {
            label: "mesh".to_owned(),
            stretches: history.pressed.iter().map(stretch).collect(),
            ..Lane::default()
        });
    }
    Lanes {
        title: "Where each job ran".to_owned(),
        x: time.axis.clone(),
        kinds,
        rows,
        caption: "Strokes are start and end. Where pauses are too short to be drawn, a bar is as high as the share \
                  of time in which the job ran."
            .to_owned(),
    }
}

fn kind(name: &str, thin: bool) -> Kind {
    Kind {
        name: name.to_owned(),
        thin,
    }
}

fn lane(job: &Job, sets: &Sets, paused: usize, time: &Time) -> Lane {
    let stretch = |stretch: &super::history::Stretch| Stretch {
        from: stretch.from / time.unit,
        to: stretch.to / time.unit,
        kind: stretch.set.map_or(paused, |set| sets.kinds[set as usize]),
    };
    let marks = [job.started, job.ended].into_iter().flatten();
    Lane {
        label: job.name.clone(),
        stretches: job.stretches.iter().map(stretch).collect(),
        marks: marks.map(|at| at / time.unit).collect(),
        note: tables::outcome(job),
        bad: job.state == Some(State::Failed),
    }
}

/// Which sets of cores have which colour.
struct Sets {
    /// Of the colours.
    names: Vec<String>,
    /// By position in the history's sets.
    kinds: Vec<usize>,
}

impl Sets {
    fn of(history: &History) -> Self {
        let mut time = vec![0.0; history.sets.len()];
        for stretch in history.jobs.iter().flat_map(|job| &job.stretches) {
            if let Some(set) = stretch.set {
                time[set as usize] += stretch.to - stretch.from;
            }
        }
        let mut most: Vec<usize> = (0..time.len()).collect();
        most.sort_by(|a, b| time[*b].total_cmp(&time[*a]));
        let mut own: Vec<usize> = most.into_iter().take(SETS).collect();
        own.sort_by_key(|set| core_list(&history.sets[*set]));
        let name = |set: &usize| match core_list(&history.sets[*set]).map(|cores| cores.len()) {
            Some(1) => format!("on core {}", history.sets[*set]),
            _ => format!("on cores {}", history.sets[*set]),
        };
        let mut names: Vec<String> = own.iter().map(name).collect();
        if own.len() < history.sets.len() {
            names.push("on other cores".to_owned());
        }
        let kind = |set| own.iter().position(|own| *own == set).unwrap_or(own.len());
        Self {
            kinds: (0..history.sets.len()).map(kind).collect(),
            names,
        }
    }
}

#[cfg(test)]
mod tests;
