// SPDX-License-Identifier: Apache-2.0
//! The demonstration as one HTML file: the answer first, then what it rests on.
//!
//! ```text
//! run.json, rounds.jsonl, requests.csv, samples.jsonl ─> Story ─┬─> answer ──────> sentences and a table
//!    (kept by the run, whole or not)                            ├─> distributions, over_time, places, shed
//!                                                               └─> hosts (folded), figures, setting
//! ```
//! The same files give the same page.

mod answer;
mod distributions;
mod figures;
mod hosts;
mod over_time;
mod places;
mod setting;
mod shed;
pub(super) mod story;
mod stretches;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::Result;
use weir_report::{Report, Series, Style};

use crate::demo::kept::{Run, Told};
use crate::demo::report::story::Story;
use crate::driver;

/// Tells of the run that is kept in the folder, in a file beside it; returns the file.
pub(super) fn write(folder: &Path) -> Result<PathBuf> {
    let run = Run::read(folder)?;
    let ways = Told::read_all(folder)?;
    let file = folder.join(driver::REPORT);
    let story = Story {
        run: &run,
        ways: &ways,
    };
    page(&story).write(&file)?;
    Ok(file)
}

pub(super) fn page(story: &Story<'_>) -> Report {
    let ways = match story.ways.len() {
        1 => "one way".to_owned(),
        n => format!("{} ways", word(n)),
    };
    let mut page = Report::new(
        format!("One workload, {ways} of choosing the host"),
        format!(
            "The demonstration of Weir, run on {}",
            story.run.origin.date()
        ),
    );
    setting::note(&mut page, story);
    answer::add(&mut page, story);
    distributions::add(&mut page, story);
    over_time::add(&mut page, story);
    places::add(&mut page, story);
    shed::add(&mut page, story);
    hosts::add(&mut page, story);
    figures::add(&mut page, story);
    setting::add(&mut page, story);
    page
}

/// A line for each way, in the same order and so in the same colour in every figure.
fn by_way(
    story: &Story<'_>,
    style: Style,
    points: impl Fn(&Told) -> Vec<(f64, f64)>,
) -> Vec<Series> {
    let series = |told: &Told| Series {
        name: told.name.clone(),
        points: points(told),
        style,
    };
    story.ways.iter().map(series).collect()
}

fn word(n: usize) -> String {
    let small = ["no", "one", "two", "three", "four", "five", "six"];
    small.get(n).map_or_else(|| n.to_string(), |w| (*w).into())
}

/// Names as one says them: `a, b and c`.
fn listed(names: &[&str]) -> String {
    match names {
        [] => "none".to_owned(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

/// The text with numbers tied to their units, which must not stand alone on a line.
fn tied(text: &str) -> String {
    let units = [" %", " ms", " s "];
    units.iter().fold(text.to_owned(), |text, unit| {
        text.replace(unit, &unit.replacen(' ', "\u{a0}", 1))
    })
}
