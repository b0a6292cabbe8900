// SPDX-License-Identifier: Apache-2.0
//! What came of it, in a few sentences and one table.

use weir_report::{Report, Table};

use crate::demo;
use crate::demo::kept::Told;
use crate::demo::report::story::Story;
use crate::demo::report::{listed, tied, word};
use crate::demo::table::{Row, milliseconds};

/// Differences below are called none: one run cannot tell them from chance.
const CHANCE: f64 = 1.05;

pub(super) fn add(page: &mut Report, story: &Story<'_>) {
    page.list(&sentences(story).map(|sentence| tied(&sentence)));
    page.table(&table(story));
    page.text("Of all requests, high and low. Mean and p95 are of the all-in duration, from the moment in the workload to the last answer or the giving up, back-off and retries included; the wait is that in the host, of those served. One run of each way: differences of a few per cent are chance.");
    let closing = closing(story);
    if !closing.is_empty() {
        page.text(if story.run.emulated {
            "What the demo claims, held against these figures:"
        } else {
            "One by one:"
        });
        page.list(&closing);
    }
}

/// What the command says below its table.
fn closing(story: &Story<'_>) -> Vec<String> {
    // There the lines are aligned.
    let plain = |line: String| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let lines = demo::closing(story.run.emulated, story.ways).into_iter();
    lines.map(|line| tied(&plain(line))).collect()
}

fn sentences(story: &Story<'_>) -> [String; 3] {
    let all: Vec<&Row> = story.figures().map(|way| &way.all).collect();
    [fastest(&all), caches(&all), unanswered(story)]
}

fn fastest(all: &[&Row]) -> String {
    if all.iter().all(|row| row.requests == 0) {
        return "The workload was empty.".to_owned();
    }
    let mut all: Vec<(&str, f64)> = all
        .iter()
        .map(|row| (&*row.way, row.duration.p95))
        .collect();
    all.sort_by(|a, b| a.1.total_cmp(&b.1));
    let (best, least) = all[0];
    let first = format!("95 % of the requests were over within {}", time(least));
    match all[1..] {
        [] => format!("{first} with {best}."),
        [.., (worst, most)] => {
            let near: Vec<&str> = all[1..]
                .iter()
                .filter(|(_, value)| *value < least * CHANCE)
                .map(|(way, _)| *way)
                .collect();
            let near = match near[..] {
                [] => String::new(),
                _ => format!(" (as good as the same with {})", listed(&near)),
            };
            format!(
                "{first} with {best}, the fastest of the {}{near}; {worst} needed {}.",
                word(all.len()),
                time(most)
            )
        }
    }
}

fn caches(all: &[&Row]) -> String {
    let mut all: Vec<(&str, f64)> = all.iter().map(|row| (&*row.way, row.hits)).collect();
    all.retain(|(_, hits)| hits.is_finite());
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let share = |hits: f64| format!("{:.1} %", 100.0 * hits);
    match all[..] {
        [] => "Nothing was served.".to_owned(),
        [(_, hits)] => format!("It found {} of the data in caches.", share(hits)),
        [(best, most), .., (worst, least)] => format!(
            "Most was found in caches with {best} ({}), least with {worst} ({}).",
            share(most),
            share(least)
        ),
    }
}

fn unanswered(story: &Story<'_>) -> String {
    let all = || story.figures().map(|way| &way.all);
    let deadline = time(1e3 * story.run.deadline);
    let without: Vec<String> = all()
        .filter(|row| row.failed > 0)
        .enumerate()
        .map(|(n, row)| {
            let share = 100.0 * row.failed as f64 / row.requests as f64;
            let share = if share < 1.0 {
                "under 1".to_owned()
            } else {
                format!("{share:.0}")
            };
            let of = if n == 0 { " of the requests" } else { "" };
            format!("{share} %{of} with {} ({})", row.way, row.failed)
        })
        .collect();
    let without: Vec<&str> = without.iter().map(String::as_str).collect();
    match (without.len(), story.ways.len()) {
        (0, 1) => "Every request had a good answer.".to_owned(),
        (0, _) => "Every request had a good answer, whatever the way.".to_owned(),
        _ => format!("No good answer within {deadline}: {}.", listed(&without)),
    }
}

/// Three digits are all that one run can mean.
fn time(ms: f64) -> String {
    if ms < 999.5 {
        format!("{} ms", milliseconds(ms))
    } else {
        let seconds = format!("{:.1}", ms / 1e3);
        format!("{} s", seconds.trim_end_matches(".0"))
    }
}

fn table(story: &Story<'_>) -> Table {
    let header = [
        "way",
        "p95 / ms",
        "in cache",
        "no good answer",
        "mean / ms",
        "p99 wait / ms",
        "attempts refused",
    ];
    let row = |told: &Told| {
        let all = &told.figures.all;
        vec![
            told.name.clone(),
            milliseconds(all.duration.p95),
            percent(all.hits),
            all.failed.to_string(),
            milliseconds(all.duration.mean),
            milliseconds(all.wait.p99),
            all.shed.to_string(),
        ]
    };
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: story.ways.iter().map(row).collect(),
    }
}

/// With a decimal; a dash where there is nothing to tell of.
pub(super) fn percent(share: f64) -> String {
    if share.is_finite() {
        format!("{:.1} %", 100.0 * share)
    } else {
        "–".to_owned()
    }
}
