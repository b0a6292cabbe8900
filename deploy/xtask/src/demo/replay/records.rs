// SPDX-License-Identifier: Apache-2.0
//! The lines that weir-replay writes, one for each request.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, ensure};

use crate::demo::results::{Record, Served};

pub(super) fn read(path: &Path) -> Result<Vec<Record>> {
    parse(&fs::read_to_string(path)?)
}

fn parse(text: &str) -> Result<Vec<Record>> {
    let mut lines = text.lines();
    let columns: Vec<&str> = lines.next().context("no header")?.split(',').collect();
    lines
        .enumerate()
        .map(|(index, line)| record(&columns, line).with_context(|| format!("line {}", index + 2)))
        .collect()
}

fn record(columns: &[&str], line: &str) -> Result<Record> {
    let cells: Vec<&str> = line.split(',').collect();
    ensure!(cells.len() == columns.len(), "has {} fields", cells.len());
    let cell = |name: &str| {
        let at = columns.iter().position(|column| *column == name);
        at.map(|at| cells[at])
            .with_context(|| format!("no column {name}"))
    };
    let milliseconds = |name: &str| anyhow::Ok(number::<f64>(cell(name)?, name)? / 1e3);
    let served = if cell("outcome")? == "ok" {
        Some(Served {
            host: cell("host")?.to_owned(),
            wait: milliseconds("wait_us")?,
            hit: cell("cache")? == "hit",
        })
    } else {
        None
    };
    Ok(Record {
        priority: cell("priority")?.to_owned(),
        duration: milliseconds("duration_us")?,
        shed_attempts: number(cell("shed_attempts")?, "shed_attempts")?,
        served,
    })
}

fn number<T: FromStr>(text: &str, name: &str) -> Result<T> {
    let parsed = text.parse().ok();
    parsed.with_context(|| format!("{name} is {text:?}, not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "index,duration_us,priority,outcome,shed_attempts,host,cache,wait_us";

    #[test]
    fn served_and_refused_requests_are_read() {
        let text = format!("{HEADER}\n0,5000,high,ok,1,a,hit,250\n1,9000,low,shed,7,,,\n");
        let records = parse(&text).unwrap();
        let served = records[0].served.as_ref().unwrap();
        assert_eq!(
            (records[0].duration, served.wait, served.hit),
            (5.0, 0.25, true)
        );
        assert!(records[1].served.is_none());
        assert_eq!(records[1].shed_attempts, 7);
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = |line: &str| format!("{:#}", parse(&format!("{HEADER}\n{line}")).unwrap_err());
        assert_eq!(error("0,5"), "line 2: has 2 fields");
        let error = error("0,5,high,ok,1,a,hit,soon");
        assert_eq!(error, "line 2: wait_us is \"soon\", not a number");
    }
}
