// SPDX-License-Identifier: Apache-2.0
//! Every host of every way, folded.

use weir_report::{Axis, Figure, Panels, Plot, Report, Series, Style};

use crate::demo::kept::Told;
use crate::demo::report::over_time::{admitted, delays, in_progress, per_host, time};
use crate::demo::report::story::Story;
use crate::sampler::Sample;
use crate::sampler::over_time::{LOW, Points};

pub(super) fn add(page: &mut Report, story: &Story<'_>) {
    page.heading("Host by host");
    page.text(
        "One line a host; colours stand for hosts here. The axes are the same for every way.",
    );
    for told in story.ways {
        page.fold(&told.name, |page| way(page, story, told));
    }
}

fn way(page: &mut Report, story: &Story<'_>, told: &Told) {
    let missed = told.samples.iter().filter(|s| s.load.is_none()).count();
    let missed = match missed {
        0 => String::new(),
        n => format!(
            " {n} of {} looks at a host had no answer; these are gaps.",
            told.samples.len()
        ),
    };
    let mut figures = vec![
        figure(
            story,
            "Requests in progress",
            "requests",
            per_host(told, in_progress),
            most(story, in_progress),
        ),
        figure(
            story,
            "Of these waiting for a core",
            "requests",
            per_host(told, Sample::queued),
            most(story, in_progress),
        ),
        figure(
            story,
            "Queuing delay",
            "mean wait / ms",
            delays(told),
            most_delay(story),
        ),
    ];
    if told.has_levels() {
        figures.push(Figure::Plot(Plot {
            title: "Low priority admitted".to_owned(),
            x: time(story),
            y: Axis::linear("requests admitted / %").range(0.0, 100.0),
            series: lines(admitted(told, LOW), Style::Step),
            ..Plot::default()
        }));
    }
    let levels = match (&told.overload, told.has_levels()) {
        (_, true) => String::new(),
        (None, _) => " No admission levels: there is no weir-control in this way.".to_owned(),
        (Some(overload), _) => {
            format!(" No admission levels: the overload policy {overload} has none.")
        }
    };
    page.panels(&Panels {
        title: String::new(),
        figures,
        caption: format!("Looked at twice a second.{missed}{levels}"),
    });
}

/// The largest value of all ways, so that their axes are the same.
fn most(story: &Story<'_>, value: impl Fn(&Sample) -> f64) -> f64 {
    let samples = story.ways.iter().flat_map(|told| &told.samples);
    samples.map(value).fold(10.0, f64::max)
}

fn most_delay(story: &Story<'_>) -> f64 {
    let points = story.ways.iter().flat_map(delays).flatten();
    points.map(|point| point.1).fold(10.0, f64::max)
}

fn figure(story: &Story<'_>, title: &str, label: &str, hosts: Vec<Points>, most: f64) -> Figure {
    Figure::Plot(Plot {
        title: title.to_owned(),
        x: time(story),
        y: Axis::log_from_zero(label).range(0.0, most),
        series: lines(hosts, Style::Line),
        ..Plot::default()
    })
}

fn lines(hosts: Vec<Points>, style: Style) -> Vec<Series> {
    let series = |(host, points): (usize, Points)| Series {
        name: format!("host {}", host + 1),
        points,
        style,
    };
    hosts.into_iter().enumerate().map(series).collect()
}
