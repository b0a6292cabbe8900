// SPDX-License-Identifier: Apache-2.0
//! What was refused to protect the hosts, and what had no good answer in the end.

use weir_report::{Axis, Figure, Panels, Plot, Report, Style, Table};

use crate::demo::kept::Told;
use crate::demo::report::by_way;
use crate::demo::report::story::Story;
use crate::demo::report::stretches;
use crate::demo::workload::PRIORITIES;
use crate::replay::Record;
use weir_replay::record::Outcome;

pub(super) fn add(page: &mut Report, story: &Story<'_>) {
    page.heading("What was shed");
    if story.figures().all(|way| way.all.shed == 0) {
        page.text("Nothing: no attempt was refused, whatever the priority.");
    } else {
        over_time(page, story);
    }
    page.table(&table(story));
    page.text("An attempt that is refused is tried again after a pause, until there is an answer or the caller gives up. Out of time: an attempt was under way when the caller gave up.");
}

fn over_time(page: &mut Report, story: &Story<'_>) {
    let seconds = story.run.seconds;
    let requests = story.ways.iter().map(|told| told.records.len()).max();
    let stretch = stretches::stretch(seconds, requests.unwrap_or(0));
    let rate = |records: &[&Record], lasts: f64| {
        let refused: u64 = records.iter().map(|record| record.shed_attempts).sum();
        refused as f64 / lasts
    };
    let points = |told: &Told, priority: &str| {
        let records = told.records.iter();
        let records = records.filter(|record| record.priority == priority);
        stretches::by_stretch(records, seconds, stretch, rate)
    };
    let most = |priority: &str| {
        let points = story.ways.iter().flat_map(|told| points(told, priority));
        points.map(|point| point.1).fold(0.0, f64::max)
    };
    let (some, none): (Vec<&str>, Vec<&str>) =
        PRIORITIES.iter().partition(|priority| most(priority) > 0.0);
    let largest = some
        .iter()
        .map(|priority| most(priority))
        .fold(1.0, f64::max);
    let panel = |priority: &&str| {
        Figure::Plot(Plot {
            title: format!("{priority} priority"),
            x: Axis::linear("time in the workload / s").range(0.0, seconds),
            y: Axis::linear("refused attempts a second").range(0.0, largest),
            series: by_way(story, Style::Line, |told| points(told, priority)),
            ..Plot::default()
        })
    };
    page.panels(&Panels {
        title: "Refused attempts".to_owned(),
        figures: some.iter().map(panel).collect(),
        caption: "Each request's refusals, at its own time in the workload: its later attempts were later."
            .to_owned(),
    });
    for priority in none {
        page.text(&format!("No attempt of {priority} priority was refused."));
    }
}

fn table(story: &Story<'_>) -> Table {
    let header = [
        "way",
        "priority",
        "requests",
        "attempts",
        "refused",
        "good answer",
        "refused to the end",
        "error at the end",
        "out of time",
    ];
    let row = |told: &Told, priority: &str| {
        let records = || told.records.iter().filter(|r| r.priority == priority);
        let ended = |outcome| records().filter(|r| r.outcome == outcome).count() as u64;
        let numbers = [
            records().count() as u64,
            records().map(|r| r.attempts).sum(),
            records().map(|r| r.shed_attempts).sum(),
            ended(Outcome::Ok),
            ended(Outcome::Shed),
            ended(Outcome::Failed),
            ended(Outcome::Timeout),
        ];
        let names = [told.name.clone(), priority.to_owned()];
        let numbers = numbers.map(|number| number.to_string());
        names.into_iter().chain(numbers).collect()
    };
    let rows = story
        .ways
        .iter()
        .flat_map(|told| PRIORITIES.iter().map(move |priority| row(told, priority)));
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}
