// SPDX-License-Identifier: Apache-2.0
//! What the page says in words and numbers.

use jiff::Timestamp;
use weir_report::Table;

use super::history::{History, Job};
use crate::jobs::State;

/// Sets of cores that are named of one job.
const SETS: usize = 3;

pub(super) fn subtitle(history: &History) -> String {
    let begun = history.begun.unwrap_or_default();
    let ended = begun + (history.length * 1e3) as u64;
    let day = |ms: u64| {
        let time = i64::try_from(ms)
            .ok()
            .and_then(|ms| Timestamp::from_millisecond(ms).ok());
        time.map_or("?".to_owned(), |time| {
            format!("{time:.0}").replace('T', " ").replace('Z', "")
        })
    };
    let cores = match &*history.machine {
        "" => String::new(),
        cores => format!(" · machine with cores {cores}"),
    };
    format!("{} to {} UTC{cores}", day(begun), day(ended))
}

/// The outcome, in sentences.
pub(super) fn summary(history: &History) -> String {
    let ended = |job: &&Job| job.state.is_some_and(State::has_ended);
    let (all, ended) = (
        history.jobs.len(),
        history.jobs.iter().filter(ended).count(),
    );
    let failed = |job: &&Job| job.state == Some(State::Failed);
    let failed = history.jobs.iter().filter(failed);
    let failed: Vec<&str> = failed.map(|job| &*job.name).collect();
    let mut text = match (ended, all) {
        (_, 0) => "There are no jobs.".to_owned(),
        (ended, all) if ended == all => {
            let last = history
                .jobs
                .iter()
                .filter_map(|job| job.ended)
                .fold(0.0, f64::max);
            match all {
                1 => format!("The job has ended after {}.", seconds(last)),
                _ => format!(
                    "All {all} jobs have ended, the last after {}.",
                    seconds(last)
                ),
            }
        }
        (ended, all) => format!("{ended} of {all} jobs have ended."),
    };
    if !failed.is_empty() {
        text += &format!(" Failed: {}.", failed.join(", "));
    }
    if let Some((over, of)) = over(history) {
        let share = 100.0 * over as f64 / of as f64;
        text += &format!(
            " The service's latency was over its target in {share:.1}\u{a0}% of {of} samples."
        );
    }
    text += &format!(
        " The service's cores changed {} and jobs were paused {}.",
        times(history.moves.values().sum()),
        times(history.jobs.iter().map(|job| job.pauses).sum())
    );
    text
}

fn times(count: u64) -> String {
    match count {
        1 => "once".to_owned(),
        count => format!("{count} times"),
    }
}

/// Samples over the target, of so many.
fn over(history: &History) -> Option<(usize, usize)> {
    let target = history.target?;
    let known = || history.tail.iter().filter(|(_, ms)| ms.is_finite());
    let of = known().count();
    (of > 0).then(|| (known().filter(|(_, ms)| *ms > target).count(), of))
}

pub(super) fn jobs(history: &History) -> Table {
    let header = [
        "job",
        "queue",
        "threads",
        "started / s",
        "ended / s",
        "ran / s",
        "paused / s",
        "pauses",
        "on cores",
        "exit",
    ];
    let row = |job: &Job| {
        let known = |time: Option<f64>| time.map_or("–".to_owned(), |time| format!("{time:.1}"));
        let before = |time: Option<f64>, is_so: bool| match time {
            None if is_so => "< 0.0".to_owned(),
            time => known(time),
        };
        let state = job.state.unwrap_or_default();
        vec![
            job.name.clone(),
            job.queue.clone(),
            job.threads.to_string(),
            before(job.started, state != State::Waiting),
            before(job.ended, state.has_ended()),
            format!("{:.1}", job.ran),
            format!("{:.1}", job.paused),
            job.pauses.to_string(),
            cores(history, job),
            job.code.map_or("–".to_owned(), |code| code.to_string()),
        ]
    };
    Table {
        header: header.map(str::to_owned).to_vec(),
        rows: history.jobs.iter().map(row).collect(),
    }
}

/// In the order in which it had them.
fn cores(history: &History, job: &Job) -> String {
    let mut sets: Vec<u32> = Vec::new();
    for set in job.stretches.iter().filter_map(|stretch| stretch.set) {
        if !sets.contains(&set) {
            sets.push(set);
        }
    }
    let more = if sets.len() > SETS { ", …" } else { "" };
    let names = sets
        .iter()
        .take(SETS)
        .map(|set| &*history.sets[*set as usize]);
    names.collect::<Vec<&str>>().join(", ") + more
}

pub(super) fn troubles(history: &History) -> Vec<String> {
    let trouble = |job: &Job| Some(format!("{}: {}", job.name, job.trouble.as_ref()?));
    history.jobs.iter().filter_map(trouble).collect()
}

/// In few words.
pub(super) fn outcome(job: &Job) -> String {
    let at = job
        .ended
        .map_or(String::new(), |at| format!(" {}", seconds(at)));
    let state = job.state.unwrap_or_default();
    match (state, job.code) {
        (State::Failed, Some(code)) => format!("✕ exit {code}"),
        (State::Failed, None) => "✕ failed".to_owned(),
        (State::Finished, _) => format!("✓{at}"),
        (State::Waiting, _) => "waits".to_owned(),
        (State::Running, _) => "runs".to_owned(),
        (State::Paused, _) => "paused".to_owned(),
    }
}

pub(super) fn service(history: &History) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut spent: Vec<(f64, f64)> = Vec::new();
    for pair in history.cores.windows(2) {
        let [(from, count), (to, _)] = [pair[0], pair[1]];
        if !count.is_finite() {
            continue;
        }
        match spent.iter_mut().find(|(known, _)| *known == count) {
            Some((_, time)) => *time += to - from,
            None => spent.push((count, to - from)),
        }
    }
    spent.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all: f64 = spent.iter().map(|(_, time)| time).sum();
    let of = |(count, time): &(f64, f64)| {
        let cores = if *count == 1.0 { "core" } else { "cores" };
        format!(
            "{count} {cores} {} ({:.1} %)",
            seconds(*time),
            100.0 * time / all
        )
    };
    if all > 0.0 {
        let spent: Vec<String> = spent.iter().map(of).collect();
        facts.push(("cores that it had".to_owned(), spent.join(", ")));
    }
    let moves: Vec<String> = history
        .moves
        .iter()
        .map(|(why, count)| format!("{} {count}", why.replace('_', " ")))
        .collect();
    if !moves.is_empty() {
        facts.push(("changes of them, by reason".to_owned(), moves.join(", ")));
    }
    if let (Some(target), Some((over, of))) = (history.target, over(history)) {
        let text = format!("{over} of {of} samples; each is the highest of about a second");
        facts.push((format!("over {target} ms"), text));
    }
    let pressed: f64 = history.pressed.iter().map(|(from, to)| to - from).sum();
    if pressed > 0.0 {
        facts.push((
            "the mesh refused or was about to".to_owned(),
            seconds(pressed),
        ));
    }
    facts.push(("governors started".to_owned(), history.starts.to_string()));
    facts
}

/// `12.3 s`, `12 min 03 s`, `1 h 02 min`.
pub(super) fn seconds(time: f64) -> String {
    let whole = time.round() as u64;
    let (hours, minutes, rest) = (whole / 3600, whole / 60 % 60, whole % 60);
    match whole {
        0..600 => format!("{time:.1} s"),
        600..3600 => format!("{minutes} min {rest:02} s"),
        _ => format!("{hours} h {minutes:02} min"),
    }
}
