// SPDX-License-Identifier: Apache-2.0
//! The lines that weir-replay writes, one for each request.

use std::fs;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

use crate::demo::results::{Outcome, Record, Served};

pub(in crate::demo) fn read(path: &Path) -> Result<Vec<Record>> {
    let read = fs::read_to_string(path).map_err(anyhow::Error::from);
    read.and_then(|text| parse(&text))
        .with_context(|| format!("reading {}", path.display()))
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
    let outcome = outcome(cell("outcome")?)?;
    let served = if outcome == Outcome::Ok {
        Some(Served {
            host: cell("host")?.to_owned(),
            wait: milliseconds("wait_us")?,
            hit: cell("cache")? == "hit",
        })
    } else {
        None
    };
    Ok(Record {
        at: milliseconds("t_us")? / 1e3,
        key: cell("key")?.to_owned(),
        priority: cell("priority")?.to_owned(),
        duration: milliseconds("duration_us")?,
        outcome,
        attempts: number(cell("attempts")?, "attempts")?,
        shed_attempts: number(cell("shed_attempts")?, "shed_attempts")?,
        served,
    })
}

fn outcome(text: &str) -> Result<Outcome> {
    Ok(match text {
        "ok" => Outcome::Ok,
        "shed" => Outcome::Shed,
        "failed" => Outcome::Failed,
        "timeout" => Outcome::Timeout,
        _ => bail!("column outcome is {text:?}, not ok, shed, failed or timeout"),
    })
}

fn number<T: FromStr>(text: &str, name: &str) -> Result<T> {
    let parsed = text.parse().ok();
    parsed.with_context(|| format!("column {name} is {text:?}, not a number"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str =
        "t_us,duration_us,key,priority,outcome,attempts,shed_attempts,host,cache,wait_us";

    #[test]
    fn served_and_refused_requests_are_read() {
        let text =
            format!("{HEADER}\n500000,5000,k,high,ok,2,1,a,hit,250\n1,9000,k,low,shed,7,7,,,\n");
        let records = parse(&text).unwrap();
        let served = records[0].served.as_ref().unwrap();
        assert_eq!(
            (records[0].duration, served.wait, served.hit),
            (5.0, 0.25, true)
        );
        assert_eq!((records[0].at, &*records[0].key), (0.5, "k"));
        assert!(records[1].served.is_none());
        assert_eq!(records[1].outcome, Outcome::Shed);
        assert_eq!(records[1].shed_attempts, 7);
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = |line: &str| format!("{:#}", parse(&format!("{HEADER}\n{line}")).unwrap_err());
        assert_eq!(error("0,5"), "line 2: has 2 fields");
        assert_eq!(
            error("0,5,k,high,ok,1,0,a,hit,soon"),
            "line 2: column wait_us is \"soon\", not a number"
        );
        assert_eq!(
            error("0,5,k,high,lost,1,0,a,hit,7"),
            "line 2: column outcome is \"lost\", not ok, shed, failed or timeout"
        );
    }
}
