// SPDX-License-Identifier: Apache-2.0
//! The table, as Markdown and as a page.

use weir_report::{BarRow, Bars, Report, Spread, Table};

use super::samples::{self, Figure, Row, Samples};

const HEADER: [&str; 6] = [
    "what",
    "CPU time or bytes",
    "wall time",
    "items/s of CPU",
    "ratio",
    "to",
];

const INTRODUCTION: &str = "Medians of all rounds, least and greatest in brackets. Ratios compare \
    CPU time, or bytes, within a round: 2 is twice the cost.";

/// Notes and the table.
pub(super) fn markdown(samples: &Samples, notes: &[String]) -> String {
    let mut text = format!("{INTRODUCTION}\n\n");
    for note in notes {
        text.push_str(&format!("- {note}\n"));
    }
    text.push('\n');
    let table = table(samples);
    let rule = vec!["---".to_owned(); HEADER.len()];
    for cells in [&table.header, &rule].into_iter().chain(&table.rows) {
        text.push_str(&format!("| {} |\n", cells.join(" | ")));
    }
    text
}

/// The same with bars.
pub(super) fn page(samples: &Samples, notes: &[String]) -> Report {
    let mut report = Report::new("What rules cost", INTRODUCTION);
    for note in notes {
        report.text(note);
    }
    let command: Vec<String> = std::env::args().skip(1).collect();
    report.command(&format!("weir-lab {}", command.join(" ")));
    report.bars(&rates(samples));
    report.table(&table(samples));
    report
}

fn table(samples: &Samples) -> Table {
    Table {
        header: HEADER.map(str::to_owned).to_vec(),
        rows: samples
            .rows()
            .iter()
            .map(|row| cells(samples, row))
            .collect(),
    }
}

fn cells(samples: &Samples, row: &Row) -> Vec<String> {
    let value = spread(row, Figure::value);
    let wall = spread(row, |figure| match figure {
        Figure::Cost(cost) => cost.wall.as_secs_f64(),
        Figure::Bytes(_) => f64::NAN,
    });
    let bytes = row
        .figures
        .iter()
        .any(|figure| matches!(figure, Figure::Bytes(_)));
    let base = row.to.as_ref().filter(|to| **to != row.what);
    let ratio = base.and_then(|_| samples.ratio(row));
    vec![
        format!("{}: {}", row.part, row.what),
        shown(value, if bytes { megabytes } else { seconds }),
        shown(wall, seconds),
        shown(rate(row), |rate| format!("{:.0}k", rate / 1e3)),
        shown(ratio, |ratio| format!("{ratio:.2}")),
        base.cloned().unwrap_or_default(),
    ]
}

fn spread(row: &Row, value: impl Fn(Figure) -> f64) -> Option<Spread> {
    samples::spread(row.figures.iter().copied().map(value))
}

fn rate(row: &Row) -> Option<Spread> {
    let value = spread(row, Figure::value).filter(|value| row.items > 0 && value.least > 0.0)?;
    let rate = |seconds| row.items as f64 / seconds;
    Some(Spread {
        median: rate(value.median),
        least: rate(value.most),
        most: rate(value.least),
    })
}

fn shown(spread: Option<Spread>, unit: impl Fn(f64) -> String) -> String {
    spread.map_or_else(
        String::new,
        |Spread {
             least,
             median,
             most,
         }| { format!("{} ({}–{})", unit(median), unit(least), unit(most)) },
    )
}

/// Three digits that count.
fn seconds(seconds: f64) -> String {
    let (number, unit) = if seconds < 1.0 {
        (seconds * 1e3, "ms")
    } else {
        (seconds, "s")
    };
    let decimals = (2.0 - number.max(1e-3).log10().floor()).clamp(0.0, 3.0) as usize;
    format!("{number:.decimals$} {unit}")
}

fn megabytes(bytes: f64) -> String {
    format!("{:.0} MB", bytes / 1e6)
}

fn rates(samples: &Samples) -> Bars {
    let row = |row: &Row| {
        let rate = rate(row).filter(|_| row.part == "rules")?;
        Some(BarRow {
            label: row.what.clone(),
            values: vec![rate.median],
        })
    };
    Bars {
        title: "Items a second on one core".to_owned(),
        label: "items per second of CPU time".to_owned(),
        rows: samples.rows().iter().filter_map(row).collect(),
        ..Bars::default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::rules::cost::Cost;

    #[test]
    fn a_row_has_spread_rate_and_ratio() {
        let mut samples = Samples::default();
        let figure = |millis| {
            let cpu = Duration::from_millis(millis);
            Figure::Cost(Cost { wall: cpu * 2, cpu })
        };
        for millis in [1, 2, 4] {
            samples.add("rules", "one", (100, Some("one")), figure(millis));
            samples.add("rules", "other", (100, Some("one")), figure(10 * millis));
        }
        samples.add("memory", "feed", (0, None), Figure::Bytes(2.5e8));
        let text = markdown(&samples, &["A note.".to_owned()]);
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(
            lines,
            [
                "- A note.",
                "",
                "| what | CPU time or bytes | wall time | items/s of CPU | ratio | to |",
                "| --- | --- | --- | --- | --- | --- |",
                "| rules: one | 2.00 ms (1.00 ms–4.00 ms) | 4.00 ms (2.00 ms–8.00 ms) | 50k (25k–100k) |  |  |",
                "| rules: other | 20.0 ms (10.0 ms–40.0 ms) | 40.0 ms (20.0 ms–80.0 ms) | 5k (2k–10k) | 10.00 (10.00–10.00) | one |",
                "| memory: feed | 250 MB (250 MB–250 MB) |  |  |  |  |",
            ]
        );
    }

    #[test]
    fn times_keep_three_digits() {
        let cases = [
            (12.345, "12.3 s"),
            (0.012345, "12.3 ms"),
            (0.000_001, "0.001 ms"),
            (123.4, "123 s"),
        ];
        for (number, text) in cases {
            assert_eq!(seconds(number), text);
        }
    }
}
