// SPDX-License-Identifier: Apache-2.0
//! weir-replay: makes the workload once and sends it for every way.

mod records;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;

use crate::command::Run;
use crate::demo::plan::{self, Plan};
use crate::demo::processes::Processes;
use crate::demo::results::Record;
use crate::workspace::Workspace;

/// In the order of the table.
pub(super) const PRIORITIES: [&str; 2] = ["high", "low"];

/// What is sent, the same for every way.
pub(super) struct Workload {
    file: PathBuf,
    /// For the head of the table.
    pub(super) description: String,
}

/// What weir-replay says of the workload it made.
#[derive(Deserialize)]
struct Report {
    requests: u64,
    keys: u64,
    largest_key_share: f64,
    rate_per_s: f64,
    utilisation: f64,
    utilisation_by_minute: Vec<f64>,
    run_factor: f64,
    mean_run_us: f64,
    distinct_bytes: f64,
}

pub(super) fn prepare(
    workspace: &Workspace,
    program: &Path,
    plan: &Plan,
    folder: &Path,
) -> Result<Workload> {
    let traces = workspace.root.join("loadtest/traces");
    let file = folder.join("workload.ndjson");
    let report = folder.join("workload.json");
    Command::new(program)
        .args(["workload", "azure-functions"])
        .arg("--counts")
        .arg(traces.join(format!("{}.csv", plan::TRACE)))
        .arg("--keys")
        .arg(traces.join(format!("{}_keys.csv", plan::TRACE)))
        .arg("--anonymous")
        .args(["--from", &plan::FROM_MINUTE.to_string()])
        .args(["--minutes", &plan::MINUTES.to_string()])
        .args(["--hosts", &plan.hosts.to_string()])
        .args(["--cores", &plan.cores.to_string()])
        .args(["--utilisation", &plan.utilisation.to_string()])
        .args(["--speed-up", &plan.speed_up().to_string()])
        .args(["--sample", &plan.sample.to_string()])
        .arg("--out")
        .arg(&file)
        .arg("--report")
        .arg(&report)
        .captured()
        .context("making the workload")?;
    let report: Report = serde_json::from_slice(&fs::read(&report)?)?;
    let description = report.describe(plan);
    Ok(Workload { file, description })
}

impl Report {
    fn describe(&self, plan: &Plan) -> String {
        format!(
            "workload: Azure Functions 2019, {minutes} minutes from {clock}, {sample:.1} % of the calls, {speed_up:.0} times as \
             fast: {requests} requests, {rate:.0}/s\n\
             MODELLED: place inside the minute (uniform), run time (from each function's percentiles; mean {run:.0} ms \
             after a factor of {factor:.2}), priority (http = high), no user\n\
             keys:     {keys} functions with {bytes:.1} GB of data; one function has {largest:.0} % of the requests\n\
             load:     run times fill {utilisation:.0} % of the cores ({by_minute} % by minute); fetching absent data comes on top",
            clock = plan::FROM_CLOCK,
            minutes = plan::MINUTES,
            sample = 100.0 * plan.sample,
            speed_up = plan.speed_up(),
            requests = self.requests,
            rate = self.rate_per_s,
            run = self.mean_run_us / 1e3,
            factor = self.run_factor,
            keys = self.keys,
            bytes = self.distinct_bytes / 1e9,
            largest = 100.0 * self.largest_key_share,
            utilisation = 100.0 * self.utilisation,
            by_minute = self.by_minute(),
        )
    }

    fn by_minute(&self) -> String {
        let percent = |share: &f64| format!("{:.0}", 100.0 * share);
        let all: Vec<String> = self.utilisation_by_minute.iter().map(percent).collect();
        all.join(", ")
    }
}

impl Workload {
    /// Sends everything through the callers' sidecars in turn and returns what became of it.
    pub(super) fn send(
        &self,
        processes: &mut Processes,
        program: &Path,
        callers: &[SocketAddr],
        deadline: Duration,
        folder: &Path,
        tick: impl FnMut(Duration),
    ) -> Result<Vec<Record>> {
        let out = folder.join("requests.csv");
        let mut command = Command::new(program);
        command.arg("run").arg("--workload").arg(&self.file);
        for caller in callers {
            command.args(["--target", &caller.to_string()]);
        }
        command
            .args(["--deadline", &format!("{}ms", deadline.as_millis())])
            .arg("--out")
            .arg(&out)
            .arg("--summary")
            .arg(folder.join("summary.json"));
        processes.run("replay", command, tick)?;
        records::read(&out).with_context(|| format!("reading {}", out.display()))
    }
}
