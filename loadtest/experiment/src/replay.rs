// SPDX-License-Identifier: Apache-2.0
//! weir-replay: sends the workload for every way.

pub(super) mod records;

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::demo::results::Record;
use crate::demo::workload::Workload;
use weir_stage::processes::Processes;

/// The file of records in a way's folder.
pub(super) const REQUESTS: &str = "requests.csv";

/// What came of it.
pub(super) struct Replayed {
    pub(super) records: Vec<Record>,
    /// How far weir-replay itself was behind, in milliseconds: 99th percentile.
    pub(super) lag: f64,
}

/// The part of its summary that the table does not compute itself.
#[derive(Deserialize)]
struct Summary {
    lag: Lag,
}

#[derive(Deserialize)]
struct Lag {
    p99_s: f64,
}

/// Sends everything through the callers' sidecars in turn and returns what became of it.
pub(super) fn send(
    workload: &Workload,
    processes: &mut Processes,
    program: &Path,
    callers: &[SocketAddr],
    deadline: Duration,
    folder: &Path,
    tick: impl FnMut(Duration),
) -> Result<Replayed> {
    let out = folder.join(REQUESTS);
    let summary = folder.join("summary.json");
    let mut command = Command::new(program);
    command.arg("run").arg("--workload").arg(&workload.file);
    if let Some(feeds) = &workload.feeds {
        command.arg("--bodies").arg(feeds);
    }
    for caller in callers {
        command.args(["--target", &caller.to_string()]);
    }
    command
        .args(["--deadline", &format!("{}ms", deadline.as_millis())])
        .arg("--out")
        .arg(&out)
        .arg("--summary")
        .arg(&summary);
    processes.run("replay", command, tick)?;
    let records = records::read(&out)?;
    let summary: Summary = serde_json::from_slice(&fs::read(&summary)?)
        .with_context(|| format!("reading {}", summary.display()))?;
    Ok(Replayed {
        records,
        lag: 1e3 * summary.lag.p99_s,
    })
}
