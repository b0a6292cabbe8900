// SPDX-License-Identifier: Apache-2.0
//! Minutes of a recorded trace, for emulated hosts.

use std::path::Path;

use anyhow::{Context, Result};
use weir_replay::azure::{self, Report};
use weir_replay::table;

use super::{Workload, save};
use crate::demo::plan::Trace;

pub(super) fn prepare(traces: &Path, trace: &Trace, folder: &Path) -> Result<Workload> {
    let open = |end: &str| {
        let file = traces.join(format!("{}{end}.csv", trace.name));
        table::open(&file).with_context(|| format!("reading {}", file.display()))
    };
    let (requests, report) = azure::convert(open("")?, open("_keys")?, &trace.params)?;
    Ok(Workload {
        file: save(&requests, &report, folder)?,
        feeds: None,
        description: describe(&report, trace.from_clock),
    })
}

fn describe(report: &Report, from_clock: &str) -> String {
    let params = &report.params;
    let percent = |share: &f64| format!("{:.0}", 100.0 * share);
    let by_minute: Vec<String> = report.utilisation_by_minute.iter().map(percent).collect();
    format!(
        "workload: Azure Functions 2019, {minutes} minutes from {from_clock}, {sample:.1} % of the calls, {speed_up:.0} times as \
         fast: {requests} requests, {rate:.0}/s\n\
         MODELLED: place inside the minute (uniform), run time (from each function's percentiles; mean {run:.0} ms \
         after a factor of {factor:.2}), priority (http = high), no user\n\
         keys:     {keys} functions with {bytes:.1} GB of data; one function has {largest:.0} % of the requests\n\
         load:     run times fill {utilisation:.0} % of the cores ({by_minute} % by minute); fetching absent data comes on top",
        minutes = params.excerpt.minutes,
        sample = 100.0 * params.sample,
        speed_up = params.excerpt.speed_up,
        requests = report.requests,
        rate = report.rate_per_s,
        run = report.mean_run_us / 1e3,
        factor = report.run_factor,
        keys = report.keys,
        bytes = report.distinct_bytes as f64 / 1e9,
        largest = 100.0 * report.largest_key_share,
        utilisation = 100.0 * report.utilisation,
        by_minute = by_minute.join(", "),
    )
}
