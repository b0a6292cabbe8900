// SPDX-License-Identifier: Apache-2.0
//! A project of such a size that its job takes a given time on the cores.

use std::fmt;
use std::time::Duration;

use anyhow::{Result, ensure};
use weir_executor::{Kind, Settings};
use weir_feeds::Format;
use weir_feeds::generate::Settings as Feeds;

use crate::jobs::Jobs;
use crate::log::{core_time, of_kind, read};
use crate::real::{Arrival, Sharing, run as run_jobs};

/// Jobs that are measured. All come at once and run one after another: a core that rests between
/// jobs is slower, and it is the busy one whose capacity counts.
const SAMPLES: usize = 150;
const FIRST_ITEMS: u64 = 500;
const ROUNDS: usize = 3;

/// Core times of the joblets of one job, by kind.
pub(super) type Sample = [Duration; Kind::COUNT];

#[derive(Debug)]
pub(super) struct Calibrated {
    pub(super) jobs: Jobs,
    pub(super) items: u64,
    pub(super) samples: Vec<Sample>,
}

impl Calibrated {
    /// Mean core time of a joblet of each kind.
    pub(super) fn means(&self) -> Sample {
        let n = u32::try_from(self.samples.len()).unwrap_or(1).max(1);
        std::array::from_fn(|kind| self.samples.iter().map(|s| s[kind]).sum::<Duration>() / n)
    }

    pub(super) fn job(&self) -> Duration {
        self.means().iter().sum()
    }
}

impl fmt::Display for Calibrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let means = self.means().map(|mean| mean.as_secs_f64() * 1e3);
        write!(
            f,
            "a job on {} items takes {:.2} ms of a busy core",
            self.items,
            self.job().as_secs_f64() * 1e3
        )?;
        for (kind, mean) in Kind::ALL.into_iter().zip(means) {
            write!(f, ", {} {mean:.2}", kind.name())?;
        }
        Ok(())
    }
}

/// Finds the size at which all cores together do `capacity` jobs a second.
pub(super) async fn run(settings: &Settings, capacity: f64) -> Result<Calibrated> {
    let target = settings.cores as f64 / capacity;
    let mut items = FIRST_ITEMS;
    let mut found = measure(settings, items).await?;
    for _ in 0..ROUNDS {
        let scale = target / found.job().as_secs_f64();
        items = ((items as f64 * scale).round() as u64).max(1);
        found = measure(settings, items).await?;
    }
    Ok(found)
}

async fn measure(settings: &Settings, items: u64) -> Result<Calibrated> {
    let feeds = Feeds {
        projects: 1,
        items_min: items,
        items_max: items,
        channels_max: 1,
        format: Format::Ndjson,
        ..Feeds::default()
    };
    let jobs = Jobs::generate(&feeds).await?;
    let arrival = Arrival {
        at: Duration::ZERO,
        job: 0,
        class: 0,
    };
    let arrivals = vec![arrival; SAMPLES];
    let patience = Duration::from_secs(10);
    run_jobs(&jobs, settings, &arrivals, Sharing::Off, patience).await?;
    let lines = read(&jobs.log_file())?;
    let of = |kind| of_kind(&lines, kind).map(core_time).collect::<Vec<_>>();
    let [fetch, shared, own, output] = Kind::ALL.map(of);
    ensure!(!fetch.is_empty(), "no job of the calibration has ended");
    let at = |times: &[Duration], n: usize| times.get(n).copied().unwrap_or_default();
    let sample = |n| [at(&fetch, n), at(&shared, n), at(&own, n), at(&output, n)];
    Ok(Calibrated {
        jobs,
        items,
        samples: (0..fetch.len()).map(sample).collect(),
    })
}
