// SPDX-License-Identifier: Apache-2.0
//! `weir-replay workload nasa`.

use std::path::PathBuf;

use anyhow::Context;
use weir_replay::nasa::{self, Params, Report};
use weir_replay::table;

use super::output::Output;

/// Makes a workload of a web log: key = page, user = client, size = that of the page (the largest
/// answer with it) times --size-factor.
///
/// MODELLED, because the source does not record it: the moment within its second (uniform at random);
/// the run time (half of all run time evenly over the requests, half in proportion to the bytes of the
/// answer, together what fills the cores to the utilisation); the priority (a share of the clients,
/// drawn at random, is high). Offsets are divided by the speed-up. Every choice comes from the seed:
/// same seed, same bytes.
#[derive(Debug, clap::Args)]
pub(crate) struct Nasa {
    /// File of t_ms,keys,cost,size,cls,client; may be gzipped.
    #[arg(long, value_name = "FILE")]
    trace: PathBuf,
    #[command(flatten)]
    params: Params,
    #[command(flatten)]
    output: Output,
}

impl Nasa {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let name = self.trace.display();
        let trace = table::open(&self.trace).with_context(|| format!("cannot read {name}"))?;
        let (requests, report) = nasa::convert(trace, &self.params)?;
        self.output.save(&requests, &report)?;
        tell(&report);
        Ok(())
    }
}

fn tell(report: &Report) {
    eprintln!(
        "{} requests over {:.1} s ({:.1}/s) {:?}; {} pages, the most frequent {:.0} % of requests; {} clients",
        report.requests,
        report.duration_s,
        report.rate_per_s,
        report.by_priority,
        report.keys,
        report.largest_key_share * 100.0,
        report.users,
    );
    eprintln!(
        "utilisation {:.4}, mean run {:.1} ms; data {:.1} MB in all",
        report.utilisation,
        report.mean_run_us / 1e3,
        report.distinct_bytes as f64 / 1e6,
    );
}
