// SPDX-License-Identifier: Apache-2.0
//! How the ways went: load, queuing delay, admission and cache hits over time.

use weir_report::{Axis, Figure, Panels, Plot, Report, Strip, Strips, Style};

use crate::demo::kept::Told;
use crate::demo::report::story::Story;
use crate::demo::report::{by_way, listed, stretches};
use crate::replay::Record;
use crate::sampler::Sample;
use crate::sampler::over_time::{self, LOW, Points, largest, mean, of_each};

/// Seconds of a cell of a strip, at least: that of two looks.
const CELL: f64 = 1.0;
/// Cells of a strip, at most.
const CELLS: f64 = 80.0;

/// Priorities' classes, as hosts and the filter have them unless told otherwise.
const CLASSES: [(&str, u8); 2] = [("high", 0), ("low", LOW)];

pub(super) fn add(page: &mut Report, story: &Story<'_>) {
    page.heading("Over time");
    page.panels(&load(story));
    page.plot(&delay(story));
    admission(page, story);
    page.plot(&hits(story));
}

/// The axis of all of them, so that one can look from one to the next.
pub(super) fn time(story: &Story<'_>) -> Axis {
    Axis::linear("time / s").range(0.0, story.end())
}

pub(super) fn in_progress(sample: &Sample) -> f64 {
    sample.load.as_ref().map_or(f64::NAN, |l| l.in_progress)
}

fn load(story: &Story<'_>) -> Panels {
    let end = story.end();
    let cells = (end / CELL).ceil().clamp(1.0, CELLS) as usize;
    let cores = story.run.cores as f64;
    let samples = story.ways.iter().flat_map(|told| &told.samples);
    let most = samples.map(in_progress).fold(cores + 1.0, f64::max);
    // The first: idle. The second: as many as run. Then each time four times as many wait.
    let steps = [1.0, cores + 1.0].into_iter();
    let waiting = (1..5).map(|n| cores * 4f64.powi(n));
    let steps: Vec<f64> = steps.chain(waiting).filter(|step| *step <= most).collect();
    let panel = |told: &Told| {
        let strip = |(host, points): (usize, Points)| Strip {
            label: format!("host {}", host + 1),
            values: over_time::parts(&points, end, cells),
        };
        let hosts = per_host(told, in_progress);
        Figure::Strips(Strips {
            title: told.name.clone(),
            x: time(story),
            rows: hosts.into_iter().enumerate().map(strip).collect(),
            steps: steps.clone(),
            unit: "requests that a host has, running and waiting".to_owned(),
            caption: String::new(),
        })
    };
    Panels {
        title: "Load of each host".to_owned(),
        figures: story.ways.iter().map(panel).collect(),
        caption: format!(
            "A host has {cores} core{s}, so from {wait} requests on some wait. Even shades from top to bottom are an \
             even load. A strip ends where its way had its last answer.",
            s = if story.run.cores == 1 { "" } else { "s" },
            wait = story.run.cores + 1,
        ),
    }
}

/// A line for each host.
pub(super) fn per_host(told: &Told, value: impl Fn(&Sample) -> f64) -> Vec<Points> {
    of_each(&told.samples, told.hosts.len(), value)
}

pub(super) fn delays(told: &Told) -> Vec<Points> {
    let hosts = 0..told.hosts.len();
    let delays = |host| over_time::delays(&told.samples, host);
    hosts.map(delays).collect()
}

fn delay(story: &Story<'_>) -> Plot {
    let points = |told: &Told| largest(&delays(told));
    Plot {
        title: "Queuing delay of the slowest host".to_owned(),
        x: time(story),
        y: Axis::log_from_zero("mean wait of the jobs that began / ms"),
        series: by_way(story, Style::Line, points),
        caption: "At each moment that of the host where it was longest: how bad it could get for a request that went \
                  there. Every host has its line further below."
            .to_owned(),
        ..Plot::default()
    }
}

fn admission(page: &mut Report, story: &Story<'_>) {
    let without: Vec<&str> = story
        .ways
        .iter()
        .filter(|told| !told.has_levels())
        .map(|told| &*told.name)
        .collect();
    if without.len() == story.ways.len() {
        page.text(&format!(
            "Admission levels: {} had none. Only weir-control with the overload policy dagor sets them.",
            listed(&without)
        ));
        return;
    }
    let panel = |(name, class): &(&str, u8)| {
        Figure::Plot(Plot {
            title: format!("{name} priority"),
            x: time(story),
            y: Axis::linear("requests admitted / %").range(0.0, 100.0),
            series: by_way(story, Style::Step, |told| match told.has_levels() {
                true => mean(&admitted(told, *class)),
                false => Vec::new(),
            }),
            ..Plot::default()
        })
    };
    let without = match without[..] {
        [] => String::new(),
        _ => format!(" {} had no levels.", listed(&without)),
    };
    page.panels(&Panels {
        title: "Admission level".to_owned(),
        figures: CLASSES.iter().map(panel).collect(),
        caption: format!(
            "What the hosts' levels let through of each priority, the mean of all hosts. A request that its host does \
             not admit goes to another one; only if none admits it, it is refused.{without}"
        ),
    });
}

/// What each host admits of a class, in per cent.
pub(super) fn admitted(told: &Told, class: u8) -> Vec<Points> {
    per_host(told, |sample| over_time::admitted(sample, class))
}

fn hits(story: &Story<'_>) -> Plot {
    let seconds = story.run.seconds;
    let requests = story.ways.iter().map(|told| told.records.len()).max();
    let stretch = stretches::stretch(seconds, requests.unwrap_or(0));
    let share = |records: &[&Record], _| {
        let served: Vec<_> = records.iter().filter_map(|r| r.served.as_ref()).collect();
        let hits = served.iter().filter(|served| served.hit).count();
        100.0 * hits as f64 / served.len() as f64
    };
    Plot {
        title: "Found in cache".to_owned(),
        x: Axis::linear("time in the workload / s").range(0.0, seconds),
        y: Axis::linear("share of served requests / %"),
        series: by_way(story, Style::Line, |told| {
            stretches::by_stretch(told.records.iter(), seconds, stretch, share)
        }),
        caption: format!(
            "Of the requests of each {stretch} s of the workload that were served in the end. Caches are empty at the \
             start."
        ),
        ..Plot::default()
    }
}
