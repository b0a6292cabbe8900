// SPDX-License-Identifier: Apache-2.0
//! `weir-replay workload feeds`.

use std::path::PathBuf;
use std::time::Duration;

use weir_replay::feeds::{self, Index, Params, Rate, Report};
use weir_replay::units;

use super::output::Output;

/// Makes a workload for rule-processing hosts from a folder that `weir-feeds` made: key = project,
/// size = that of its stored data, body = a request of one of its channels. Replay it with
/// `run --bodies` and the same folder.
///
/// ASSUMED, because no trace of such jobs is public: they come independently of one another (a
/// Poisson process, its rate even or along a line); how popular a project is follows Zipf's law and
/// says nothing of its size; the channel is any of the project's; which share is high is a guess
/// (document 001 says only that those of the web backend are). Every choice comes from the seed:
/// same seed, same bytes; another rate brings the same jobs at other times.
#[derive(Debug, clap::Args)]
pub(crate) struct Feeds {
    /// Folder with feeds.json and rules/.
    #[arg(long, value_name = "DIR")]
    feeds: PathBuf,
    /// Jobs a second, at the beginning.
    #[arg(long, value_name = "R", value_parser = units::not_negative)]
    rate: f64,
    /// Jobs a second at the end; the rate rises or falls along a line (default: as --rate).
    #[arg(long, value_name = "R", value_parser = units::not_negative)]
    ramp_to: Option<f64>,
    /// How long jobs come, such as 600s or 10m.
    #[arg(long, value_parser = units::duration_above_0)]
    duration: Duration,
    /// Exponent of popularity: the k-th project's share is in proportion to k^-S; 0: all alike.
    #[arg(long, value_name = "S", default_value = "1", value_parser = units::not_negative)]
    zipf: f64,
    /// Share of the jobs with priority high.
    #[arg(long, value_name = "SHARE", default_value = "0.2", value_parser = units::share)]
    high_share: f64,
    /// Name no user; otherwise the project is the user.
    #[arg(long)]
    anonymous: bool,
    /// Seed of every random choice.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[command(flatten)]
    output: Output,
}

impl Feeds {
    pub(super) fn run(&self) -> anyhow::Result<()> {
        let index = Index::open(&self.feeds)?;
        let (requests, report) = feeds::generate(&index, &self.params())?;
        self.output.save(&requests, &report)?;
        tell(&report);
        Ok(())
    }

    fn params(&self) -> Params {
        Params {
            rate: Rate {
                from: self.rate,
                to: self.ramp_to.unwrap_or(self.rate),
            },
            duration: self.duration,
            zipf: self.zipf,
            high_share: self.high_share,
            users: !self.anonymous,
            seed: self.seed,
        }
    }
}

fn tell(report: &Report) {
    eprintln!(
        "{} requests over {:.1} s ({:.1}/s) {:?}; {} of {} projects, the most frequent {:.0} % of requests",
        report.requests,
        report.duration_s,
        report.rate_per_s,
        report.by_priority,
        report.keys,
        report.projects,
        report.largest_key_share * 100.0,
    );
    eprintln!(
        "{} different bodies; data {:.1} MB in all, the largest {:.1} MB, the mean request's {:.1} MB",
        report.bodies,
        report.distinct_bytes as f64 / 1e6,
        report.largest_bytes as f64 / 1e6,
        report.mean_bytes / 1e6,
    );
}
