// SPDX-License-Identifier: Apache-2.0
//! Part 3: the static plan, its runs by chance, and other plans.

use std::fmt::Write;

use super::{FITTED, HELD_BACK, compared, head, line, percent};
use crate::colocation::params::Params;
use crate::colocation::part3::{OBJECTIVE, Outcome, Written};
use crate::colocation::published::{
    JOBS, PART3_APART_S, PART3_NAIVE_S, PART3_S, PART3_TOTAL_APART_S, PART3_TOTAL_S,
    PART3_VIOLATIONS,
};
use crate::colocation::search::Search;

/// Of the search for a better plan.
const CLIMBS: u64 = 20;
const MOVES: u32 = 20_000;

pub(super) fn markdown(text: &mut String, params: &Params, seeds: u64) {
    let document = Written::document();
    let played = document.play(params);
    times(text, &document, &played, params);
    let by_chance = |plan: &Written| -> Vec<Outcome> {
        let run = |seed| plan.play_by_chance(params, seed);
        (1..=seeds.max(PART3_VIOLATIONS.len() as u64))
            .map(run)
            .collect()
    };
    let runs = by_chance(&document);
    apart(text, &runs, &by_chance(&document.clone().at_once()));
    service(text, &runs);
    let search = Search::new(params);
    let (_, better) = search.best(CLIMBS, MOVES);
    let found = better.play(params);
    plans(text, params, &found);
    best(text, &better, found.total_s, search.bound(), played.total_s);
}

fn times(text: &mut String, document: &Written, played: &Outcome, params: &Params) {
    text.push_str("## Part 3: a plan for two nodes (SIMULATED)\n\nNothing is by chance.\n\n");
    head(text, &["", "document 004", "SIMULATED", "off by", ""]);
    let wanted = PART3_TOTAL_S;
    compared(text, "all jobs", wanted, played.total_s, false, FITTED);
    for (job, wanted) in PART3_S.into_iter().enumerate() {
        compared(text, JOBS[job], wanted, played.jobs_s[job], false, FITTED);
    }
    let at_once = document.clone().at_once().play(params).total_s;
    let name = "all jobs at once";
    compared(text, name, PART3_NAIVE_S, at_once, false, HELD_BACK);
    text.push('\n');
}

/// Standard deviation from run to run.
fn deviation(runs: &[Outcome], of: impl Fn(&Outcome) -> f64) -> f64 {
    let mean = |of: &dyn Fn(&Outcome) -> f64| runs.iter().map(of).sum::<f64>() / runs.len() as f64;
    let middle = mean(&of);
    mean(&|run| (of(run) - middle).powi(2)).sqrt()
}

fn apart(text: &mut String, runs: &[Outcome], at_once: &[Outcome]) {
    let _ = writeln!(
        text,
        "### From run to run (SIMULATED)\n\nStandard deviations, of three runs in the document, which has whole seconds, and of {} \
         here. Chance is that of another group's three runs (`../traces/parsec_times.csv`); fft has radix's.\n",
        runs.len()
    );
    head(text, &["", "document 004", "SIMULATED"]);
    let mut row = |name: &str, published: &str, simulated: f64| {
        let cells = [name, published, &format!("± {simulated:.2} s")].map(str::to_owned);
        line(text, &cells);
    };
    for (job, published) in PART3_APART_S.into_iter().enumerate() {
        let simulated = deviation(runs, |run| run.jobs_s[job]);
        row(JOBS[job], &format!("± {published:.2} s"), simulated);
    }
    let total = |run: &Outcome| run.total_s;
    let published = format!("± {PART3_TOTAL_APART_S:.2} s");
    row("all jobs", &published, deviation(runs, total));
    let published = "much more than in order";
    row("all jobs at once", published, deviation(at_once, total));
    text.push('\n');
}

fn service(text: &mut String, runs: &[Outcome]) {
    let objective = OBJECTIVE.as_secs_f64() * 1e3;
    let _ = writeln!(
        text,
        "### memcached on its own node (SIMULATED)\n\n30,000 requests a second and 10 more every 20 s, two cores. Violations: \
         intervals whose p95 is above {objective} ms.\n"
    );
    let columns = [
        "run",
        "intervals",
        "highest p95",
        "violations",
        "document 004",
    ];
    head(text, &columns);
    for (seed, (run, published)) in runs.iter().zip(PART3_VIOLATIONS).enumerate() {
        let intervals = &run.history.intervals;
        let highest = intervals.iter().map(|one| one.p95_s).fold(0.0, f64::max);
        let row = [
            (seed + 1).to_string(),
            intervals.len().to_string(),
            format!("{:.2} ms", highest * 1e3),
            percent(run.violations),
            percent(published),
        ];
        line(text, &row);
    }
    text.push('\n');
}

/// What the document tried and what it suggests.
fn plans(text: &mut String, params: &Params, found: &Outcome) {
    let document = Written::document;
    let [canneal, freqmine] =
        ["canneal", "freqmine"].map(|job| document().with_all_cores(job).play(params));
    let both = document()
        .with_all_cores("canneal")
        .with_all_cores("freqmine");
    let rows = [
        ("the document's", document().play(params)),
        ("all jobs at once", document().at_once().play(params)),
        (
            "fft beside freqmine, two cores shared",
            document().fft_beside_freqmine(7).play(params),
        ),
        (
            "fft beside freqmine with 5 cores, none shared",
            document().fft_beside_freqmine(5).play(params),
        ),
        ("canneal with 8 cores", canneal),
        ("freqmine with 8 cores", freqmine),
        ("both with 8 cores", both.play(params)),
        ("the best that was found", found.clone()),
    ];
    text.push_str("### Other plans (SIMULATED)\n\nNothing is by chance.\n\n");
    let columns = [
        "plan",
        "all jobs",
        "node of four done",
        "node of eight done",
        "freqmine",
        "canneal",
        "fft",
    ];
    head(text, &columns);
    for (name, played) in rows {
        let [four, eight] = played.nodes_s;
        let [.., freqmine, canneal, fft] = played.jobs_s;
        let times = [played.total_s, four, eight, freqmine, canneal, fft];
        let mut row = vec![name.to_owned()];
        row.extend(times.map(|time| format!("{time:.1} s")));
        line(text, &row);
    }
    text.push('\n');
}

fn best(text: &mut String, better: &Written, total: f64, bound: f64, document: f64) {
    let _ = writeln!(
        text,
        "The best plan of {CLIMBS} climbs with {MOVES} moves each ends after {total:.1} s, {:.0} % sooner than the \
         document's and {:.1} % above {bound:.1} s, which no plan can beat.\n",
        100.0 * (1.0 - total / document),
        100.0 * (total / bound - 1.0),
    );
    head(text, &["job", "node", "cores", "threads", "after"]);
    for row in better.rows() {
        line(text, &row);
    }
    text.push('\n');
}
