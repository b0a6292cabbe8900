// SPDX-License-Identifier: Apache-2.0
//! Rules on generated feeds, wanted at random times.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;

use super::Workload;
use crate::demo::plan::{Feeds, Plan};
use crate::demo::programs::Programs;
use crate::feeds::Index;
use weir_stage::command::Run;

/// What weir-replay says of the workload it made.
#[derive(Deserialize)]
struct Report {
    requests: u64,
    keys: u64,
    bodies: u64,
    largest_key_share: f64,
}

pub(super) fn prepare(
    programs: &Programs,
    feeds: &Feeds,
    plan: &Plan,
    folder: &Path,
) -> Result<Workload> {
    let store = folder.join("feeds");
    Command::new(&programs.feeds)
        .arg("--out")
        .arg(&store)
        .args(["--projects", &feeds.projects.to_string()])
        .args(["--items-min", &feeds.items_min.to_string()])
        .args(["--items-max", &feeds.items_max.to_string()])
        .args(["--channels-max", &feeds.channels_max.to_string()])
        .args(["--format", feeds.format])
        .args(["--seed", &feeds.seed.to_string()])
        .captured()
        .context("making the feeds")?;
    let file = folder.join("workload.ndjson");
    let report = folder.join("workload.json");
    Command::new(&programs.replay)
        .args(["workload", "feeds", "--anonymous", "--feeds"])
        .arg(&store)
        .args(["--rate", &feeds.rate.to_string()])
        .args(["--duration", &format!("{}s", plan.replay.as_secs_f64())])
        .args(["--zipf", &feeds.zipf.to_string()])
        .args(["--high-share", &feeds.high_share.to_string()])
        .args(["--seed", &feeds.seed.to_string()])
        .arg("--out")
        .arg(&file)
        .arg("--report")
        .arg(&report)
        .captured()
        .context("making the workload")?;
    let report: Report = serde_json::from_slice(&fs::read(&report)?)?;
    let description = report.describe(feeds, &Index::open(&store)?);
    Ok(Workload {
        file,
        feeds: Some(store),
        description,
    })
}

impl Report {
    fn describe(&self, feeds: &Feeds, index: &Index) -> String {
        format!(
            "workload: {requests} requests at random times (Poisson, {rate}/s), {bodies} different ones; {high:.0} % are high, no user\n\
             keys:     {keys} projects; their shares by Zipf's law (s = {zipf}), one has {largest:.0} % of the requests\n\
             feeds:    {index}; {format}, generated from seed {seed}",
            requests = self.requests,
            rate = feeds.rate,
            bodies = self.bodies,
            high = 100.0 * feeds.high_share,
            keys = self.keys,
            zipf = feeds.zipf,
            largest = 100.0 * self.largest_key_share,
            format = feeds.format,
            seed = feeds.seed,
        )
    }
}
