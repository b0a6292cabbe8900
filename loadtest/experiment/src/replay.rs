// SPDX-License-Identifier: Apache-2.0
//! weir-replay as a process, and the fate of each request that it sent.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use weir_replay::backoff::Backoff;
use weir_replay::record::{COLUMNS, Cache, Outcome};
use weir_replay::table::{self, BadInput, Row};
use weir_stage::processes::Processes;

/// The file of records in a folder.
pub(crate) const REQUESTS: &str = "requests.csv";

/// A workload about to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Replay<'a> {
    /// weir-replay.
    pub(crate) program: &'a Path,
    pub(crate) workload: &'a Path,
    /// The folder of the bodies that it names.
    pub(crate) bodies: Option<&'a Path>,
    /// Callers' sidecars, which take turns.
    pub(crate) targets: &'a [SocketAddr],
    /// A caller that has no good answer by then gives up.
    pub(crate) deadline: Duration,
    /// Attempts of each request, at most.
    pub(crate) attempts: u32,
    /// Between two of them, where it is not weir-replay's own.
    pub(crate) backoff: Option<&'a Backoff>,
}

/// What came of it.
pub(crate) struct Replayed {
    pub(crate) records: Vec<Record>,
    /// How far weir-replay itself was behind, in milliseconds: 99th percentile.
    pub(crate) lag: f64,
}

/// One request of the workload, with all its attempts.
#[derive(Clone, Debug)]
pub(crate) struct Record {
    /// Its time in the workload, in seconds.
    pub(crate) at: f64,
    /// What a host may have cached; may be empty.
    pub(crate) key: String,
    pub(crate) priority: String,
    /// From its time in the workload to its first attempt, in milliseconds: how far the replayer was behind.
    pub(crate) lag: f64,
    /// From its time in the workload to its end, in milliseconds.
    pub(crate) duration: f64,
    /// From the sending of its last attempt to its end, in milliseconds.
    pub(crate) attempt: f64,
    pub(crate) outcome: Outcome,
    pub(crate) attempts: u64,
    pub(crate) shed_attempts: u64,
    /// What the host that served it says; none if no attempt succeeded.
    pub(crate) served: Option<Served>,
}

/// A good answer.
#[derive(Clone, Debug)]
pub(crate) struct Served {
    pub(crate) host: String,
    /// Time in the host in which nothing ran for the request, in milliseconds.
    pub(crate) wait: f64,
    /// Time in the host in which something ran for it, in milliseconds; none where the host does not say.
    pub(crate) worked: Option<f64>,
    pub(crate) hit: bool,
}

impl Replay<'_> {
    /// Sends everything. The folder gets [`REQUESTS`] and `summary.json`; `tick` is told the time gone by.
    pub(crate) fn send(
        &self,
        processes: &mut Processes,
        name: &str,
        folder: &Path,
        tick: impl FnMut(Duration),
    ) -> Result<Replayed> {
        let out = folder.join(REQUESTS);
        let summary = folder.join("summary.json");
        let mut command = Command::new(self.program);
        command.arg("run").arg("--workload").arg(self.workload);
        if let Some(bodies) = self.bodies {
            command.arg("--bodies").arg(bodies);
        }
        for target in self.targets {
            command.args(["--target", &target.to_string()]);
        }
        command
            .args(["--deadline", &format!("{}ms", self.deadline.as_millis())])
            .args(["--max-attempts", &self.attempts.to_string()])
            .arg("--out")
            .arg(&out)
            .arg("--summary")
            .arg(&summary);
        if let Some(backoff) = self.backoff {
            let micros = |time: Duration| format!("{}us", time.as_micros());
            command
                .args(["--backoff-base", &micros(backoff.base)])
                .args(["--backoff-cap", &micros(backoff.cap)]);
        }
        processes.run(name, command, tick)?;
        let told: Value = serde_json::from_slice(&fs::read(&summary)?)?;
        let lag = told.pointer("/lag/p99_s").and_then(Value::as_f64);
        let lag = lag.with_context(|| format!("{} tells no lag", summary.display()))?;
        Ok(Replayed {
            records: read(&out)?,
            lag: 1e3 * lag,
        })
    }
}

/// Reads what weir-replay wrote, or weir-sim in the same form.
pub(crate) fn read(file: &Path) -> Result<Vec<Record>> {
    let read = || -> Result<Vec<Record>> {
        let columns: Vec<&str> = COLUMNS.split(',').collect();
        let mut records = Vec::new();
        table::read_csv(table::open(file)?, &columns, |row| {
            records.push(Record::parse(row)?);
            Ok(())
        })?;
        Ok(records)
    };
    read().with_context(|| format!("reading {}", file.display()))
}

impl Record {
    fn parse(row: &Row<'_>) -> Result<Self, BadInput> {
        let milliseconds = |column| Ok(row.whole(column)? as f64 / 1e3);
        let name = row.text("outcome");
        let outcome = Outcome::parse(name)
            .ok_or_else(|| row.bad("outcome", format!("there is no {name:?}")))?;
        // What streams its answer does not tell how long it runs.
        let worked = || -> Result<Option<f64>, BadInput> {
            let told = !row.text("run_us").is_empty();
            told.then(|| Ok(milliseconds("fetch_us")? + milliseconds("run_us")?))
                .transpose()
        };
        let served = || -> Result<Served, BadInput> {
            Ok(Served {
                host: row.text("host").to_owned(),
                wait: milliseconds("wait_us")?,
                worked: worked()?,
                hit: row.text("cache") == Cache::Hit.as_str(),
            })
        };
        Ok(Self {
            at: milliseconds("t_us")? / 1e3,
            key: row.text("key").to_owned(),
            priority: row.text("priority").to_owned(),
            lag: milliseconds("lag_us")?,
            duration: milliseconds("duration_us")?,
            attempt: milliseconds("attempt_us")?,
            outcome,
            attempts: row.whole("attempts")?,
            shed_attempts: row.whole("shed_attempts")?,
            served: (outcome == Outcome::Ok).then(served).transpose()?,
        })
    }

    /// Milliseconds between its first attempt and its end that it was not in the host; none where it had several
    /// attempts, or the host does not tell its time.
    pub(crate) fn outside(&self) -> Option<f64> {
        let served = self.served.as_ref().filter(|_| self.attempts == 1)?;
        Some(self.duration - self.lag - served.wait - served.worked?)
    }

    /// One that was served at once, and waited so many milliseconds at a host.
    #[cfg(test)]
    pub(crate) fn good(priority: &str, host: &str, wait: f64, hit: bool) -> Self {
        Self {
            at: 0.0,
            key: String::new(),
            priority: priority.to_owned(),
            lag: 0.0,
            duration: wait + 10.0,
            attempt: wait + 10.0,
            outcome: Outcome::Ok,
            attempts: 1,
            shed_attempts: 0,
            served: Some(Served {
                host: host.to_owned(),
                wait,
                worked: Some(9.0),
                hit,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(lines: &str) -> Result<Vec<Record>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(REQUESTS);
        fs::write(&file, format!("{COLUMNS}\n{lines}")).unwrap();
        read(&file)
    }

    #[test]
    fn served_and_refused_requests_are_read() {
        let text = "0,500000,0,5000,4000,high,k,,t,ok,200,2,1,a,,hit,250,0,9,0.5\n\
                    1,1,0,9000,800,low,k,,t,shed,429,7,7,,,,,,,\n";
        let records = parse(text).unwrap();
        let served = records[0].served.as_ref().unwrap();
        assert_eq!(
            (records[0].duration, records[0].attempt, served.wait),
            (5.0, 4.0, 0.25)
        );
        assert!(served.hit);
        assert_eq!((records[0].at, &*records[0].key), (0.5, "k"));
        assert_eq!(records[0].outside(), None);
        assert!(records[1].served.is_none());
        assert_eq!(records[1].outcome, Outcome::Shed);
        assert_eq!(records[1].shed_attempts, 7);
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = |line: &str| format!("{:#}", parse(line).unwrap_err());
        let line =
            |outcome, wait| format!("0,0,0,5,5,high,k,,t,{outcome},200,1,0,a,,hit,{wait},,,");
        for (line, says) in [
            ("0,5".to_owned(), "line 2: line: has 2 fields"),
            (line("ok", "soon"), "line 2: wait_us: \"soon\" is not"),
            (line("lost", "7"), "line 2: outcome: there is no \"lost\""),
        ] {
            assert!(error(&line).contains(says), "{}", error(&line));
        }
    }
}
