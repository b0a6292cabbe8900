// SPDX-License-Identifier: Apache-2.0
//! `weir-replay workload flash-crowd`.

use std::path::PathBuf;

use anyhow::Context;
use weir_replay::flash_crowd::{self, Params, Report};
use weir_replay::table;

use super::output::Output;

/// Makes a workload whose requests come as those of a recorded flash crowd did.
///
/// MADE UP, because the source counts requests by the minute and nothing else: the moment within the
/// minute (uniform at random); the key (Zipf's law); its size (all alike); the run time (exponential,
/// its mean such that the cores are busy to the utilisation in the mean of all minutes, so more in the
/// crowd); the priority (at random). No request names a user. Every choice comes from the seed: same
/// seed, same bytes.
#[derive(Debug, clap::Args)]
pub(crate) struct FlashCrowd {
    /// File of t_ms,count; may be gzipped.
    #[arg(long, value_name = "FILE")]
    counts: PathBuf,
    #[command(flatten)]
    params: Params,
    #[command(flatten)]
    output: Output,
}

impl FlashCrowd {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let name = self.counts.display();
        let counts = table::open(&self.counts).with_context(|| format!("cannot read {name}"))?;
        let (requests, report) = flash_crowd::convert(counts, &self.params)?;
        self.output.save(&requests, &report)?;
        tell(&report);
        Ok(())
    }
}

fn tell(report: &Report) {
    eprintln!(
        "{} requests over {:.1} s ({:.1}/s) {:?}; {} keys; the busiest minute has {:.2} times the mean",
        report.requests,
        report.duration_s,
        report.rate_per_s,
        report.by_priority,
        report.keys,
        report.peak,
    );
    let utilisation = || report.utilisation_by_minute.iter().copied();
    eprintln!(
        "mean run {:.1} ms; utilisation by minute of the source {:.2} to {:.2}",
        report.mean_run_us / 1e3,
        utilisation().fold(f64::INFINITY, f64::min),
        utilisation().fold(0.0, f64::max),
    );
}
