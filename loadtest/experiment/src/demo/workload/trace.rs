// SPDX-License-Identifier: Apache-2.0
//! Minutes of a recorded trace, for emulated hosts.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Workload;
use crate::demo::plan::{Plan, Trace};
use crate::workspace::Workspace;
use weir_stage::command::Run;

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
    trace: &Trace,
    plan: &Plan,
    folder: &Path,
) -> Result<Workload> {
    let traces = workspace.root.join("loadtest/traces");
    let file = folder.join("workload.ndjson");
    let report = folder.join("workload.json");
    let speed_up = trace.speed_up(plan.replay);
    Command::new(program)
        .args(["workload", "azure-functions"])
        .arg("--counts")
        .arg(traces.join(format!("{}.csv", trace.name)))
        .arg("--keys")
        .arg(traces.join(format!("{}_keys.csv", trace.name)))
        .arg("--anonymous")
        .args(["--from", &trace.from_minute.to_string()])
        .args(["--minutes", &trace.minutes.to_string()])
        .args(["--hosts", &plan.hosts.to_string()])
        .args(["--cores", &plan.cores.to_string()])
        .args(["--utilisation", &trace.utilisation.to_string()])
        .args(["--speed-up", &speed_up.to_string()])
        .args(["--sample", &trace.sample.to_string()])
        .arg("--out")
        .arg(&file)
        .arg("--report")
        .arg(&report)
        .captured()
        .context("making the workload")?;
    let report: Report = serde_json::from_slice(&fs::read(&report)?)?;
    Ok(Workload {
        file,
        feeds: None,
        description: report.describe(trace, speed_up),
    })
}

impl Report {
    fn describe(&self, trace: &Trace, speed_up: f64) -> String {
        format!(
            "workload: Azure Functions 2019, {minutes} minutes from {clock}, {sample:.1} % of the calls, {speed_up:.0} times as \
             fast: {requests} requests, {rate:.0}/s\n\
             MODELLED: place inside the minute (uniform), run time (from each function's percentiles; mean {run:.0} ms \
             after a factor of {factor:.2}), priority (http = high), no user\n\
             keys:     {keys} functions with {bytes:.1} GB of data; one function has {largest:.0} % of the requests\n\
             load:     run times fill {utilisation:.0} % of the cores ({by_minute} % by minute); fetching absent data comes on top",
            clock = trace.from_clock,
            minutes = trace.minutes,
            sample = 100.0 * trace.sample,
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
