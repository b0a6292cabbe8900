// SPDX-License-Identifier: Apache-2.0
//! What was seen of the hosts over time, and how it is kept.

use std::fmt::Write;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

use crate::demo::sampler::page::Load;

/// A look at one host.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample {
    /// Seconds since sending began.
    pub(crate) at: f64,
    /// Its place among the hosts, from 0.
    pub(crate) host: usize,
    /// None if it did not answer.
    pub(crate) load: Option<Load>,
    /// Ranks that weir-control lets it be asked for; none where no levels are kept.
    pub(crate) level: Option<u16>,
}

/// The file in a way's folder.
pub(crate) const FILE: &str = "samples.csv";

const COLUMNS: [&str; 7] = [
    "t_us",
    "host",
    "in_progress",
    "queued",
    "waited_s",
    "jobs",
    "level",
];

/// As CSV; hosts count from 1, and what is not known is empty.
pub(crate) fn written(samples: &[Sample]) -> String {
    let mut text = COLUMNS.join(",") + "\n";
    for sample in samples {
        let (at, host) = ((1e6 * sample.at).round(), sample.host + 1);
        let load = sample.load.as_ref().map_or(",,,".to_owned(), |load| {
            let Load {
                in_progress,
                queued,
                waited,
                jobs,
            } = load;
            format!("{in_progress},{queued},{waited},{jobs}")
        });
        let level = sample.level.map(|level| level.to_string());
        let _ = writeln!(text, "{at},{host},{load},{}", level.unwrap_or_default());
    }
    text
}

/// What [`written`] wrote.
pub(crate) fn parse(text: &str) -> Result<Vec<Sample>> {
    let mut lines = text.lines();
    let header = lines.next().unwrap_or_default();
    ensure!(
        header == COLUMNS.join(","),
        "line 1: the columns are {header:?}"
    );
    lines
        .enumerate()
        .map(|(index, line)| sample(line).with_context(|| format!("line {}", index + 2)))
        .collect()
}

fn sample(line: &str) -> Result<Sample> {
    let cells: Vec<&str> = line.split(',').collect();
    ensure!(cells.len() == COLUMNS.len(), "has {} fields", cells.len());
    let load = match &cells[2..6] {
        ["", "", "", ""] => None,
        _ => Some(Load {
            in_progress: number(&cells, 2)?,
            queued: number(&cells, 3)?,
            waited: number(&cells, 4)?,
            jobs: number(&cells, 5)?,
        }),
    };
    let host = number::<usize>(&cells, 1)?.checked_sub(1);
    let level = match cells[6] {
        "" => None,
        _ => Some(number(&cells, 6)?),
    };
    Ok(Sample {
        at: number::<f64>(&cells, 0)? / 1e6,
        host: host.context("column host is 0; hosts count from 1")?,
        load,
        level,
    })
}

fn number<T: FromStr>(cells: &[&str], n: usize) -> Result<T> {
    let (name, text) = (COLUMNS[n], cells[n]);
    let parsed = text.parse().ok();
    parsed.with_context(|| format!("column {name} is {text:?}, not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_again() {
        let load = Load {
            in_progress: 7.0,
            queued: 3.0,
            waited: 0.125,
            jobs: 10.0,
        };
        let sample = |load, level| Sample {
            at: 1.500001,
            host: 2,
            load,
            level,
        };
        let samples = [sample(Some(load), Some(2100)), sample(None, None)];
        let text = written(&samples);
        assert!(text.ends_with("\n1500001,3,7,3,0.125,10,2100\n1500001,3,,,,,\n"));
        assert_eq!(parse(&text).unwrap(), samples);
    }

    #[test]
    fn a_broken_line_is_named_with_its_column() {
        let error = |line: &str| {
            let text = format!("{}\n{line}\n", COLUMNS.join(","));
            format!("{:#}", parse(&text).unwrap_err())
        };
        assert_eq!(
            error("0,1,many,0,0,0,"),
            "line 2: column in_progress is \"many\", not a number"
        );
        assert_eq!(error("0,1"), "line 2: has 2 fields");
        assert!(error("0,0,,,,,").contains("line 2: column host"));
        assert!(
            parse("t,host\n")
                .unwrap_err()
                .to_string()
                .contains("line 1")
        );
    }
}
