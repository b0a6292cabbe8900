// SPDX-License-Identifier: Apache-2.0
//! How long requests took and waited, by priority.

use weir_report::{Axis, Figure, Panels, Plot, Report, Style, cdf};

use crate::demo::kept::Told;
use crate::demo::report::by_way;
use crate::demo::report::story::Story;
use crate::demo::workload::PRIORITIES;
use crate::replay::Record;
use crate::sampler::over_time::Points;

pub(super) fn add(page: &mut Report, story: &Story<'_>) {
    page.heading("How long requests took");
    page.panels(&Panels {
        title: "Duration, all-in".to_owned(),
        figures: panels(story, "duration / ms", |record| Some(record.duration)),
        caption: format!(
            "The share of requests that were over after so long. Higher and further left is better. Who had no good answer after {} s \
             gave up and counts with that time.",
            story.run.deadline
        ),
    });
    page.panels(&Panels {
        title: "Wait in the host".to_owned(),
        figures: panels(story, "wait / ms", |record| {
            record.served.as_ref().map(|served| served.wait)
        }),
        caption: "The share of served requests that waited so long at most, as the host says: time in which nothing \
                  ran for them. Those that were given up are not in it, so a way that drops many looks better here \
                  than it was."
            .to_owned(),
    });
}

/// A panel for each priority, all with the same axes.
fn panels(story: &Story<'_>, label: &str, value: impl Fn(&Record) -> Option<f64>) -> Vec<Figure> {
    let all = story.ways.iter().flat_map(|told| &told.records);
    let most = all.filter_map(&value).fold(10.0, f64::max);
    let panel = |priority: &str| {
        let points = |told: &Told| {
            let records = told.records.iter();
            let records = records.filter(|record| record.priority == priority);
            per_cent(&records.filter_map(&value).collect::<Vec<f64>>())
        };
        let series = by_way(story, Style::Step, points);
        Figure::Plot(Plot {
            title: format!("{priority} priority"),
            x: Axis::log_from_zero(label).range(0.0, most),
            y: Axis::linear("share of requests / %").range(0.0, 100.0),
            series,
            ..Plot::default()
        })
    };
    PRIORITIES.iter().map(|priority| panel(priority)).collect()
}

fn per_cent(values: &[f64]) -> Points {
    let points = cdf(values).into_iter();
    points
        .map(|(value, share)| (value, 100.0 * share))
        .collect()
}
