// SPDX-License-Identifier: Apache-2.0
//! `weir-sim cell`: one simulation, few figures.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use weir_replay::units;
use weir_sim::cell::{Cell, Group};
use weir_sim::document001::published::Row;
use weir_sim::document001::{Params, Requests};
use weir_sim::host_loads::HostLoads;
use weir_sim::plan::longest_first;
use weir_sim::workload::Job;
use weir_sim::{Levels, Scenario, simulate_watched};

use super::scenario;
use super::workload_file::WorkloadFile;

/// The requests that document 001 describes, instead of a file.
const DOCUMENT_001: &str = "document-001";
const WINDOW: Duration = Duration::from_secs(3600);

#[derive(clap::Args)]
pub(super) struct Args {
    /// A workload file, or document-001
    #[arg(long, value_name = "FILE")]
    workload: PathBuf,
    /// Of document 001: begin so long after midnight [default: 0s]
    #[arg(long, value_parser = units::duration)]
    begin: Option<Duration>,
    /// Of document 001: so much of it [default: 60m]
    #[arg(long, value_parser = units::duration_above_0)]
    window: Option<Duration>,
    /// Requests before this time only warm the caches; level_reversals count from the beginning all the same
    #[arg(long, default_value = "0s", value_parser = units::duration)]
    from: Duration,
    #[command(flatten)]
    fleet: scenario::Args,
}

impl Args {
    pub(super) fn run(&self) -> Result<()> {
        let mut scenario = self.fleet.scenario()?;
        let mut cell = Cell::new(&scenario, self.from);
        let tell = |ended| cell.add(&ended);
        let mut loads;
        let levels = if self.workload == Path::new(DOCUMENT_001) {
            ensure!(
                !self.fleet.language_model,
                "--language-model: document 001's requests are no prompts"
            );
            let begin = self.begin.unwrap_or_default();
            let window = self.window.unwrap_or(WINDOW);
            let hours = (begin + window).as_secs_f64() / 3600.0;
            ensure!(hours <= 240.0, "--begin and --window: at most 240 h");
            let requests = Requests::new(&Params::default(), scenario.seed, hours);
            let keys = requests.keys();
            let begins = |job: &Job| job.at >= begin;
            let shifted = |job: Job| Job {
                at: job.at - begin,
                ..job
            };
            let jobs = requests.as_trace().filter(begins).map(shifted);
            if scenario.lacks_plan() {
                let requests = Requests::new(&Params::default(), scenario.seed, hours);
                let jobs = requests.as_trace().filter(begins);
                scenario.plan = Some(longest_first(&keys, jobs, scenario.hosts));
            }
            loads = HostLoads::new(scenario.hosts, self.from, window);
            simulate_watched(&scenario, &keys, jobs, tell, &mut |sample| {
                loads.add(sample)
            })?
        } else {
            ensure!(
                self.begin.is_none() && self.window.is_none(),
                "--begin and --window: only of {DOCUMENT_001}; a file is played as a whole"
            );
            let file = WorkloadFile::check(&self.workload, &scenario)?;
            file.plan(&mut scenario)?;
            file.flag_overload(&scenario, 1.0);
            let mut play = file.play()?;
            let jobs = play.by_ref().map(|(_, job)| job);
            loads = HostLoads::new(scenario.hosts, self.from, file.lasts);
            let watch = &mut |sample| loads.add(sample);
            let levels = simulate_watched(&scenario, file.workload.keys(), jobs, tell, watch)?;
            play.end()?;
            levels
        };
        println!(
            "{}",
            serde_json::to_string_pretty(&figures(&cell, &scenario, &levels, &loads)?)?
        );
        Ok(())
    }
}

fn figures(cell: &Cell, scenario: &Scenario, levels: &Levels, loads: &HostLoads) -> Result<Value> {
    let [high, low] = cell.groups();
    ensure!(
        high.requests + low.requests > 0,
        "--from: no request comes after it"
    );
    Ok(json!({
        "what": "SIMULATED",
        "seed": scenario.seed,
        "high": group(&high),
        "low": group(&low),
        "hit_ratio": cell.hit_ratio(),
        "shed": cell.shed(),
        "bounces": cell.bounces(),
        "goodput": cell.goodput(),
        "load_deviation": loads.deviation(),
        "level_reversals": levels.reversals,
    }))
}

fn group(group: &Group) -> Value {
    let row = |[mean, p50, p90, p95, p99, max]: Row| json!({"mean": mean, "p50": p50, "p90": p90, "p95": p95, "p99": p99, "max": max});
    json!({
        "requests": group.requests,
        "failed": group.failed,
        "duration_s": row(group.duration),
        "wait_s": row(group.wait),
        "host_duration_s": row(group.host_duration),
        "host_wait_s": row(group.host_wait),
    })
}
