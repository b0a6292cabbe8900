// SPDX-License-Identifier: Apache-2.0
//! weir-replay, and what it wrote of each request.

use std::net::SocketAddr;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::Result;
use serde::Deserialize;
use weir_replay::record::Outcome;
use weir_stage::processes::Processes;

use crate::driver::read_lines;
use crate::shared_node::programs::Programs;
use crate::shared_node::work::Work;

/// A caller that has no answer by then gives up.
pub const DEADLINE: Duration = Duration::from_secs(5);

/// One request. It is sent once: who is refused does not come again.
#[derive(Clone, Debug, Deserialize)]
pub struct Record {
    /// When it was due.
    pub t_us: u64,
    /// From then to its end.
    pub duration_us: u64,
    /// `high` or `low`.
    pub priority: String,
    /// How it ended.
    pub outcome: Outcome,
    /// Time at the host in which nothing ran for it.
    pub wait_us: Option<u64>,
}

/// Sends a workload of the folder to an address; `tick` is told the time gone by.
///
/// # Errors
/// weir-replay fails, or another process has ended.
pub fn send(
    processes: &mut Processes,
    programs: &Programs,
    work: &Work,
    (name, folder): (&str, &Path),
    target: SocketAddr,
    tick: impl FnMut(Duration),
) -> Result<Vec<Record>> {
    let file = |end: &str| folder.join(format!("{name}{end}"));
    let out = file(".requests.ndjson");
    let mut command = Command::new(&programs.replay);
    command
        .arg("run")
        .arg("--workload")
        .arg(file(".workload.ndjson"))
        .arg("--bodies")
        .arg(&work.folder)
        .args(["--target", &target.to_string()])
        .args(["--max-attempts", "1"])
        .args(["--deadline", &format!("{}s", DEADLINE.as_secs())])
        .arg("--out")
        .arg(&out)
        .arg("--summary")
        .arg(file(".summary.json"));
    processes.run(&format!("replay-{name}"), command, tick)?;
    read_lines(&out)
}

/// Where the workload that [`send`] sends is to be.
#[must_use]
pub fn workload(name: &str, folder: &Path) -> std::path::PathBuf {
    folder.join(format!("{name}.workload.ndjson"))
}
