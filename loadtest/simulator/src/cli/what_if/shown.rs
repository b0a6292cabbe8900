// SPDX-License-Identifier: Apache-2.0
//! The answer, as text and as a page.

use weir_report::{BarRow, Bars, Report, Table};
use weir_sim::what_if::{Ratio, Run, mean_s};

use super::{Args, Played, Variant};

/// By priority, high first.
const PRIORITIES: [&str; 2] = ["high", "low"];

fn ms(seconds: f64) -> String {
    format!("{:.1}", seconds * 1e3)
}

fn percent(share: f64) -> String {
    format!("{:.2}", share * 100.0)
}

/// The mean over the seeds.
fn mean(runs: &[Run], of: impl Fn(&Run) -> f64) -> f64 {
    runs.iter().map(of).sum::<f64>() / runs.len().max(1) as f64
}

/// `1.24 (1.10 to 1.41)`, and a word where chance says as much.
fn times(ratio: Ratio) -> String {
    let Ratio {
        of_means,
        least,
        most,
    } = ratio;
    let unsure = if ratio.is_sure() { "" } else { ", unsure" };
    format!("{of_means:.2} ({least:.2} to {most:.2}{unsure})")
}

/// Of one priority; none where no request has it.
fn table(played: &[Played], class: usize) -> Option<Table> {
    let (now, _) = played.split_first()?;
    mean_s(&now.runs, class)?;
    let row = |one: &Played| {
        let ratio = match std::ptr::eq(one, now) {
            true => "1".to_owned(),
            false => Ratio::of(&now.runs, &one.runs, class).map_or_else(|| "–".to_owned(), times),
        };
        vec![
            one.name.clone(),
            ms(mean_s(&one.runs, class).unwrap_or(f64::NAN)),
            ratio,
            ms(mean(&one.runs, |run| run.p99_s(class))),
            percent(mean(&one.runs, |run| run.failed(class))),
            percent(mean(&one.runs, Run::hit_ratio)),
        ]
    };
    let header = [
        "what if",
        "mean / ms",
        "times as long (95 of 100 resamples)",
        "p99 / ms",
        "failed / %",
        "hits of all / %",
    ];
    Some(Table::new(header, played.iter().map(row)))
}

fn said(args: &Args, now: &Variant) -> String {
    format!(
        "SIMULATED: {} requests in {:.0} s, mean of {} seeds. Durations are all-in, from a request's coming to its end.",
        now.file.requests,
        now.file.lasts.as_secs_f64(),
        args.seeds
    )
}

const LIMITS: &str = "How sure: the n-th request is the same in all of them; 40 equal parts of the workload are drawn again \
     2,000 times, and the interval holds 95 of 100 of these draws. That is the chance in this workload, not what the \
     simulator leaves out. Compare the row \"now\" with what was logged first: weirctl capture prints it.";

/// Markdown.
pub(super) fn text(args: &Args, now: &Variant, played: &[Played]) -> String {
    let mut text = format!("{}\n", said(args, now));
    for (class, priority) in PRIORITIES.into_iter().enumerate() {
        if let Some(table) = table(played, class) {
            text.push_str(&format!("\nPriority {priority}:\n\n{}", table.markdown()));
        }
    }
    text.push_str(&format!("\n{LIMITS}\n"));
    text
}

pub(super) fn page(args: &Args, now: &Variant, played: &[Played]) -> Report {
    let mut page = Report::new("What if, SIMULATED", said(args, now));
    page.command(&command(args));
    for (class, priority) in PRIORITIES.into_iter().enumerate() {
        let Some(table) = table(played, class) else {
            continue;
        };
        page.heading(&format!("Priority {priority}"));
        page.bars(&bars(played, class));
        page.table(&table);
    }
    page.note(LIMITS);
    page
}

fn bars(played: &[Played], class: usize) -> Bars {
    let row = |one: &Played| BarRow {
        label: one.name.clone(),
        values: vec![
            mean_s(&one.runs, class).unwrap_or(f64::NAN) * 1e3,
            mean(&one.runs, |run| run.p99_s(class)) * 1e3,
        ],
    };
    Bars {
        title: "How long requests take, SIMULATED".to_owned(),
        label: "all-in duration / ms".to_owned(),
        series: vec!["mean".to_owned(), "p99".to_owned()],
        rows: played.iter().map(row).collect(),
        caption: String::new(),
    }
}

fn command(args: &Args) -> String {
    let then: String = args
        .then
        .iter()
        .map(|then| format!(" --then '{then}'"))
        .collect();
    let (workload, now, seeds) = (args.workload.display(), &args.now, args.seeds);
    format!("weir-sim what-if --workload {workload} --now '{now}'{then} --seeds {seeds}")
}
