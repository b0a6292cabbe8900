// SPDX-License-Identifier: Apache-2.0
//! What a person or a program reads: a table as wide as the terminal, or JSON.

use std::fmt::Display;
use std::io::Write;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use clap::ValueEnum;
use comfy_table::{ContentArrangement, Table, presets};
use serde::Serialize;

/// The form of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Tables and sentences.
    #[default]
    Table,
    /// JSON, the same figures.
    Json,
}

/// An answer of a command.
pub trait Answer: Serialize + Display {}

impl<T: Serialize + Display> Answer for T {}

/// Writes to standard output. Colours go where they are wanted: to a terminal without `NO_COLOR`.
///
/// # Errors
/// Standard output is closed.
pub fn show(answer: &impl Answer, format: Format) -> Result<()> {
    let mut to = anstream::stdout().lock();
    match format {
        Format::Table => writeln!(to, "{}", answer.to_string().trim_end())?,
        Format::Json => writeln!(to, "{}", serde_json::to_string_pretty(answer)?)?,
    }
    Ok(())
}

/// A table with these columns. Cells wrap where a terminal is narrower; a file or pipe gets whole lines.
pub(crate) fn table(columns: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(columns.to_vec());
    if let Some(width) = width() {
        table.set_content_arrangement(ContentArrangement::Dynamic);
        table.set_width(width);
    }
    table
}

fn width() -> Option<u16> {
    let told = std::env::var("COLUMNS").ok();
    let told = told.and_then(|columns| columns.parse().ok());
    told.or_else(|| terminal_size::terminal_size().map(|(width, _)| width.0))
}

/// Something is broken.
pub(crate) const BAD: Style = AnsiColor::Red.on_default().bold();
/// It works, and could be better.
pub(crate) const FAIR: Style = AnsiColor::Yellow.on_default();
/// All is well.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();

/// In a style.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// `1 host`, `2 hosts`.
pub(crate) fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        more => format!("{more} {noun}s"),
    }
}

/// `120 ms`, `3.4 s`, `2 min`: as short as an age needs.
pub(crate) fn age(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..120_000 => format!("{:.1} s", ms as f64 / 1e3),
        120_000..7_200_000 => format!("{} min", ms / 60_000),
        _ => format!("{} h", ms / 3_600_000),
    }
}

/// A dash where nothing is known.
pub(crate) fn or_dash<T: Display>(value: Option<T>) -> String {
    value.map_or_else(|| "–".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_are_short() {
        let ages = [0, 999, 1_000, 119_999, 120_000, 7_200_000].map(age);
        assert_eq!(ages, ["0 ms", "999 ms", "1.0 s", "120.0 s", "2 min", "2 h"]);
    }
}
