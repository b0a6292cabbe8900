// SPDX-License-Identifier: Apache-2.0
//! Rules on generated feeds, wanted at random times.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use weir_replay::feeds::{Index, Report, generate};
use weir_stage::command::Run;

use super::{Workload, save};
use crate::demo::plan::Feeds;
use crate::demo::programs::Programs;

pub(crate) fn prepare(programs: &Programs, feeds: &Feeds, folder: &Path) -> Result<Workload> {
    let store = folder.join("feeds");
    let program = programs.feeds.as_ref();
    let made = Command::new(program.context("--real needs --feeds")?)
        .arg("--out")
        .arg(&store)
        .args(["--projects", &feeds.projects.to_string()])
        .args(["--items-min", &feeds.items_min.to_string()])
        .args(["--items-max", &feeds.items_max.to_string()])
        .args(["--channels-max", &feeds.channels_max.to_string()])
        .args(["--format", feeds.format])
        .args(["--seed", &feeds.params.seed.to_string()])
        .captured()?;
    let (requests, report) = generate(&Index::open(&store)?, &feeds.params)?;
    Ok(Workload {
        file: save(&requests, &report, folder)?,
        feeds: Some(store),
        description: describe(&report, feeds, made.trim()),
    })
}

/// `made` is what weir-feeds says of the feeds.
fn describe(report: &Report, feeds: &Feeds, made: &str) -> String {
    format!(
        "workload: {requests} requests at random times (Poisson, {rate}/s), {bodies} different ones; {high:.0} % are high, no user\n\
         keys:     {keys} projects; their shares by Zipf's law (s = {zipf}), one has {largest:.0} % of the requests\n\
         feeds:    {made}; {format}, generated from seed {seed}",
        requests = report.requests,
        rate = report.params.rate.from,
        bodies = report.bodies,
        high = 100.0 * report.params.high_share,
        keys = report.keys,
        zipf = report.params.zipf,
        largest = 100.0 * report.largest_key_share,
        format = feeds.format,
        seed = report.params.seed,
    )
}
