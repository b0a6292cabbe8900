// SPDX-License-Identifier: Apache-2.0
//! The load client as a process, and what it tells.

use std::fs;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use weir_memcached_load::interval::Figures;
use weir_memcached_load::total::Summary;
use weir_stage::command::Run;
use weir_stage::process::Started;

use crate::colocation::rounds::wait;

/// Before jobs and memcached: a client that waits for a core would measure itself. The same in all ways.
const NICE: &str = "-10";
/// With so many memcached is the bottleneck, and not the client.
const KEYS_PER_GET: &str = "100";

/// More than two cores carry, with the client on them, on any machine we know of.
const TOO_MANY: f64 = 80_000.0;
/// Keeps memcached busy without letting it fall behind for long.
const FEW: u32 = 64;

/// Who asks whom.
#[derive(Clone, Debug)]
pub struct Client {
    /// weir-memcached-load.
    pub program: PathBuf,
    /// memcached's address.
    pub address: String,
    /// For logs and figures.
    pub folder: PathBuf,
}

/// What is asked.
#[derive(Clone, Debug)]
pub struct Asked {
    /// Of its log and figures.
    pub name: &'static str,
    /// Requests a second, least and most.
    pub rates: (f64, f64),
    /// A new rate is drawn so often.
    pub interval: Duration,
    /// How long.
    pub length: Duration,
    /// Of everything that is drawn.
    pub seed: u64,
    /// The limit of an interval's p95, in microseconds.
    pub slo_us: u64,
    /// Requests that may wait.
    pub in_flight: u32,
    /// Where latencies are shown.
    pub metrics: Option<SocketAddr>,
}

/// A line of what it tells.
#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum Line {
    Started { unix_ms: u64 },
    Interval(Figures),
    Total(Summary),
}

/// What was seen of a whole load.
#[derive(Clone, Debug, PartialEq)]
pub struct Told {
    /// In order.
    pub intervals: Vec<Figures>,
    /// Of all of them.
    pub total: Summary,
}

/// What was seen of a load that goes on.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SoFar {
    /// When it began, in milliseconds since 1970; none: it has not.
    pub began_ms: Option<u64>,
    /// Those that are over.
    pub intervals: Vec<Figures>,
}

impl Client {
    /// Stores the keys in a memcached.
    ///
    /// # Errors
    /// It does not take them.
    pub fn new(program: &Path, address: &str, folder: &Path) -> Result<Self> {
        let mut command = Command::new(program);
        command.arg(address).arg("--load-only").captured()?;
        Ok(Self {
            program: program.to_owned(),
            address: address.to_owned(),
            folder: folder.to_owned(),
        })
    }

    /// Requests a second that memcached carries: what it answers of more than it can.
    ///
    /// # Errors
    /// It answers too few to measure anything.
    pub fn carried(&self, length: Duration, seed: u64) -> Result<f64> {
        let most = Asked {
            name: "all-cores",
            rates: (TOO_MANY, TOO_MANY),
            interval: length,
            length,
            seed,
            slo_us: 1_000_000,
            in_flight: FEW,
            metrics: None,
        };
        wait(&mut self.start(&most)?)?;
        let carried = self.told(&most)?.intervals[0].achieved_qps;
        ensure!(
            carried > 100.0,
            "memcached answers {carried:.0} requests a second: too few to measure anything"
        );
        Ok(carried)
    }

    /// Starts a load.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(&self, asked: &Asked) -> Result<Started> {
        let mut command = Command::new("nice");
        let seconds = |time: Duration| format!("{}ms", time.as_millis());
        command
            .args(["-n", NICE])
            .arg(&self.program)
            .arg(&self.address)
            .args(["--no-load", "--keys-per-get", KEYS_PER_GET])
            .args(["--min", &asked.rates.0.to_string()])
            .args(["--max", &asked.rates.1.to_string()])
            .args(["--interval", &seconds(asked.interval)])
            .args(["--duration", &seconds(asked.length)])
            .args(["--seed", &asked.seed.to_string()])
            .args(["--slo", &format!("{}us", asked.slo_us)])
            .args(["--in-flight", &asked.in_flight.to_string()])
            .arg("--json")
            .arg(self.lines(asked));
        if let Some(address) = asked.metrics {
            command.args(["--metrics", &address.to_string()]);
        }
        Started::new(asked.name, command, &self.folder)
    }

    /// What a load that has ended has told.
    ///
    /// # Errors
    /// It did not tell all.
    pub fn told(&self, asked: &Asked) -> Result<Told> {
        let file = self.lines(asked);
        read(&file).with_context(|| file.display().to_string())
    }

    /// What a load that goes on has told until now; nothing before it has begun.
    ///
    /// # Errors
    /// Its figures cannot be read.
    pub fn so_far(&self, asked: &Asked) -> Result<SoFar> {
        let file = self.lines(asked);
        let text = match fs::read_to_string(&file) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            text => text.with_context(|| file.display().to_string())?,
        };
        so_far(&text).with_context(|| file.display().to_string())
    }

    fn lines(&self, asked: &Asked) -> PathBuf {
        self.folder.join(format!("{}.jsonl", asked.name))
    }
}

fn read(file: &Path) -> Result<Told> {
    let mut intervals = Vec::new();
    for line in fs::read_to_string(file)?.lines() {
        match serde_json::from_str(line)? {
            Line::Started { .. } => {}
            Line::Interval(figures) => intervals.push(figures),
            Line::Total(total) => return Ok(Told { intervals, total }),
        }
    }
    bail!("the load has not told its end")
}

/// The last line may be half there.
fn so_far(text: &str) -> Result<SoFar> {
    let mut found = SoFar::default();
    for line in text
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
    {
        match serde_json::from_str(line)? {
            Line::Started { unix_ms } => found.began_ms = Some(unix_ms),
            Line::Interval(figures) => found.intervals.push(figures),
            Line::Total(_) => {}
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_did_not_end_tells_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("light.jsonl");
        fs::write(&file, "{\"started\":{\"unix_ms\":1,\"seed\":1}}\n").unwrap();
        assert!(read(&file).unwrap_err().to_string().contains("not told"));
    }

    #[test]
    fn of_a_load_that_goes_on_whole_lines_are_read() {
        let started = "{\"started\":{\"unix_ms\":7,\"seed\":1}}\n";
        let found = so_far(&format!("{started}{{\"interval\":{{\"inter")).unwrap();
        assert_eq!((found.began_ms, found.intervals), (Some(7), vec![]));
        assert_eq!(so_far("").unwrap(), SoFar::default());
        assert!(so_far("{}\n").is_err());
    }
}
