// SPDX-License-Identifier: Apache-2.0
//! `weir-replay workload azure-functions`.

use std::path::PathBuf;

use anyhow::Context;
use weir_replay::azure::{self, Params, Report};
use weir_replay::table;

use super::output::Output;

/// Makes a workload of Azure Functions: key = function, user = application, size = the
/// application's memory (1 MB = 10^6 bytes).
///
/// MODELLED, because the source does not record it: the place of an invocation inside its minute
/// (uniform at random); its run time (drawn from the function's measured percentiles, linear in
/// between); its priority (from the trigger: `--high` classes are high, the others low; by default
/// http, where somebody waits). Offsets and run times are divided by the speed-up; then run times
/// alone are multiplied by one factor so that they fill the cores to the utilisation. Fetches of
/// data on the hosts come on top. Every choice comes from the seed: same seed, same bytes.
#[derive(Debug, clap::Args)]
pub(crate) struct AzureFunctions {
    /// File of t_ms,keys,count,cls; may be gzipped.
    #[arg(long, value_name = "FILE")]
    counts: PathBuf,
    /// File of functions, their percentiles and memory; may be gzipped.
    #[arg(long, value_name = "FILE")]
    keys: PathBuf,
    #[command(flatten)]
    params: Params,
    #[command(flatten)]
    output: Output,
}

impl AzureFunctions {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let open = |file: &PathBuf| {
            table::open(file).with_context(|| format!("cannot read {}", file.display()))
        };
        let (counts, keys) = (open(&self.counts)?, open(&self.keys)?);
        let (requests, report) = azure::convert(counts, keys, &self.params)?;
        self.output.save(&requests, &report)?;
        tell(&report);
        Ok(())
    }
}

fn tell(report: &Report) {
    eprintln!(
        "{} requests over {:.1} s ({:.1}/s) {:?}; {} keys, the most frequent {:.0} % of requests",
        report.requests,
        report.duration_s,
        report.rate_per_s,
        report.by_priority,
        report.keys,
        report.largest_key_share * 100.0,
    );
    eprintln!(
        "times divided by {}, then run times multiplied by {:.6}: {:.1} core-seconds, utilisation {:.4} (asked {}), mean {:.1} ms",
        report.params.excerpt.speed_up,
        report.run_factor,
        report.run_core_s,
        report.utilisation,
        report.params.utilisation,
        report.mean_run_us / 1e3,
    );
    let minutes = report.utilisation_by_minute.iter();
    let minutes: Vec<_> = minutes.map(|u| format!("{u:.2}")).collect();
    eprintln!("utilisation by minute of the source: {}", minutes.join(" "));
    eprintln!(
        "{} run times cut to {:.1} ms; data {:.1} MB in all, the largest {:.1} MB",
        report.capped,
        report.max_run_us as f64 / 1e3,
        report.distinct_bytes as f64 / 1e6,
        report.largest_bytes as f64 / 1e6,
    );
}
