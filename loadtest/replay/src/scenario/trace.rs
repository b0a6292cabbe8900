// SPDX-License-Identifier: Apache-2.0
//! Requests that were recorded: minutes of the Azure Functions trace.

use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::plan::{Capacity, Plan, Timed};
use super::{Error, Fleet, Scenario};
use crate::excerpt::{self, Excerpt};
use crate::workload::Request;
use crate::{azure, table};

/// The only stage of a trace.
pub(super) const STAGE: &str = "trace";
/// The most important first.
pub(super) const PRIORITIES: [&str; 2] = ["high", "low"];

/// Which minutes, and how they are fitted to the fleet, as by `weir-replay workload azure-functions`.
#[derive(Debug, Clone, PartialEq)]
pub struct Trace {
    /// Calls by minute.
    pub counts: PathBuf,
    /// Functions.
    pub keys: PathBuf,
    /// The first minute.
    pub from_minute: u64,
    /// How many.
    pub minutes: u64,
    /// Times are divided by it.
    pub speed_up: f64,
    /// Share of the calls.
    pub sample: f64,
    /// Run times over what the cores offer.
    pub utilisation: f64,
}

pub(super) fn make(
    scenario: &Scenario,
    trace: &Trace,
    fleet: Fleet,
    lasting: Option<Duration>,
    seed: u64,
) -> Result<(Vec<Request>, Plan), Error> {
    let Fleet::Cores(cores) = fleet else {
        return Err(Error::Fleet(
            "run times of a trace are fitted to cores: their number is needed, not requests a second",
        ));
    };
    let whole = trace.minutes as f64 * 60.0 / trace.speed_up;
    // More of the speed and less of the calls: the load stays, and takes less time.
    let shorter = lasting.map_or(1.0, |lasting| whole / lasting.as_secs_f64());
    let params = azure::Params {
        excerpt: Excerpt {
            from_minute: trace.from_minute,
            minutes: trace.minutes,
            speed_up: trace.speed_up * shorter,
        },
        fleet: excerpt::Fleet {
            hosts: 1,
            cores: cores.round().max(1.0) as u32,
        },
        utilisation: trace.utilisation,
        sample: (trace.sample / shorter).min(1.0),
        max_run: None,
        high: vec!["http".to_owned()],
        users: false,
        seed,
    };
    let (counts, keys) = (open(&trace.counts)?, open(&trace.keys)?);
    let (requests, report) = azure::convert(counts, keys, &params)
        .map_err(|why| Error::Trace(trace.counts.clone(), why))?;
    let mean_run_ms = report.mean_run_us / 1e3;
    let plan = Plan {
        scenario: scenario.name.clone(),
        objective: scenario.objective.clone(),
        seed,
        capacity: Capacity {
            cores: Some(params.fleet.all_cores()),
            requests_per_s: 1e3 * params.fleet.all_cores() / mean_run_ms,
        },
        deadline_ms: 1e3 * scenario.deadline.as_secs_f64(),
        priorities: PRIORITIES.map(str::to_owned).to_vec(),
        stages: vec![Timed {
            name: STAGE.to_owned(),
            from_s: 0.0,
            to_s: report.duration_s,
            measured: true,
            requests: requests.len(),
            run_s: report.run_core_s,
        }],
        requests: requests.len(),
        mean_run_ms,
        thresholds: scenario.thresholds.clone(),
    };
    Ok((requests, plan))
}

fn open(file: &Path) -> Result<Box<dyn BufRead>, Error> {
    table::open(file).map_err(|why| Error::Unread(file.to_owned(), why))
}
