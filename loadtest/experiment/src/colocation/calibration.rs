// SPDX-License-Identifier: Apache-2.0
//! Sizes that suit the machine, found at the start of a run.
//!
//! ```text
//!  memcached alone on all cores, asked for more than it can ──> requests a second it carries ──> light, heavy
//!  memcached alone on all cores, heavy load ──> median of p95 ──> SLO
//!  each job, small ──> its CPU time ──> its size
//! ```

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;
use weir_memcached_load::interval::Figures;
use weir_memcached_load::server::Program;
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::cgroups::Cgroups;
use crate::colocation::jobs::{self, Job, Sizes};
use crate::colocation::load::{Asked, Client};
use crate::colocation::plan::Plan;
use crate::colocation::programs::Programs;
use crate::colocation::rounds::wait;

/// Of the loads' highest rate, as a share of what all cores carry with the client on them. Heavy is what memcached
/// holds the SLO at when it has them all; half of it leaves a core to others.
const LIGHT: f64 = 0.35;
const HEAVY: f64 = 0.7;
/// Document 004's rates are from 5,000 to 100,000.
const LEAST: f64 = 1.0 / 20.0;
/// The limit of an interval's p95, times that of memcached alone at the heavy load.
const SLO: f64 = 3.0;
/// Of a job's first try: some tenths of a second, of zstd some seconds, because its tables grow up to 8 MiB.
const TRY: Sizes = Sizes {
    operations: 1_000,
    frames: 12,
    bytes: 8 << 20,
};
/// 115 KB each: a job that would need more is shorter than asked for.
const MOST_FRAMES: u32 = 1_500;
const MOST_BYTES: u64 = 200 << 20;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Requests of 100 keys a second that memcached carries on all cores, with the client on them.
    pub all_cores: f64,
    /// The p95 of memcached alone at the heavy load: of half of the intervals it is no more.
    pub alone_p95_us: u64,
    /// The limit of an interval's p95.
    pub slo_us: u64,
    /// Of the jobs.
    pub sizes: Sizes,
}

impl Calibration {
    /// Measures. Logs go to `folder`.
    ///
    /// # Errors
    /// A program fails, or memcached answers too little to tell anything.
    pub fn measure(programs: &Programs, plan: &Plan, folder: &Path, seed: u64) -> Result<Self> {
        std::fs::create_dir_all(folder)?;
        let heavy = |all_cores| rates(all_cores, HEAVY);
        let alone = Alone::measure("colocation", programs, plan.calibrate, heavy, folder, seed)?;
        Ok(Self {
            all_cores: alone.all_cores,
            alone_p95_us: alone.p95_us,
            slo_us: slo(alone.p95_us),
            sizes: sizes(programs, plan.job, folder, seed)?,
        })
    }

    /// Least and most of the light load, requests a second.
    #[must_use]
    pub fn light(&self) -> (f64, f64) {
        rates(self.all_cores, LIGHT)
    }

    /// Least and most of the heavy load.
    #[must_use]
    pub fn heavy(&self) -> (f64, f64) {
        rates(self.all_cores, HEAVY)
    }
}

/// memcached on all cores, with nobody beside it but the client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alone {
    /// Requests of 100 keys a second that it carries.
    pub all_cores: f64,
    /// The p95 at a load that it carries: of half of the intervals it is no more.
    pub p95_us: u64,
}

impl Alone {
    /// For an experiment of this name. `load`: least and most of the rates for the p95, of what it carries. Logs go to
    /// `folder`, which is there.
    ///
    /// # Errors
    /// A program fails, or memcached answers too little to tell anything.
    pub fn measure(
        experiment: &str,
        programs: &Programs,
        length: Duration,
        load: impl Fn(f64) -> (f64, f64),
        folder: &Path,
        seed: u64,
    ) -> Result<Self> {
        let cgroups = Cgroups::new(experiment)?;
        let server = Program::at(programs.memcached.clone()).start(2, folder)?;
        cgroups.take(server.pid())?;
        let client = Client::new(&programs.load, server.address(), folder)?;
        let all_cores = client.carried(length, seed)?;
        let asked = Asked {
            name: "alone",
            rates: load(all_cores),
            interval: length / 4,
            length: 2 * length,
            seed,
            slo_us: 1_000_000,
            in_flight: 4_096,
            metrics: None,
        };
        wait(&mut client.start(&asked)?)?;
        let p95_us = typical(&client.told(&asked)?.intervals);
        let p95_us = p95_us.context("memcached alone did not answer 95 of 100 requests")?;
        Ok(Self { all_cores, p95_us })
    }
}

fn rates(all_cores: f64, share: f64) -> (f64, f64) {
    let most = all_cores * share;
    (most * LEAST, most)
}

/// The limit that follows from the p95 of memcached alone.
pub(crate) fn slo(alone_p95_us: u64) -> u64 {
    (alone_p95_us as f64 * SLO).ceil() as u64
}

/// The upper median of the intervals' p95: one stall of the machine does not make the limit.
fn typical(intervals: &[Figures]) -> Option<u64> {
    let p95 = |interval: &Figures| interval.latency.p95_us.unwrap_or(u64::MAX);
    let mut all: Vec<u64> = intervals.iter().map(p95).collect();
    all.sort_unstable();
    all.get(all.len() / 2)
        .copied()
        .filter(|p95| *p95 < u64::MAX)
}

/// Tries each job small.
fn sizes(programs: &Programs, wanted: Duration, folder: &Path, seed: u64) -> Result<Sizes> {
    let folder = folder.join("work");
    let mut took = Vec::new();
    for job in jobs::make(programs, TRY, &folder, seed)? {
        took.push(cpu_time(&job)?);
    }
    let _ = std::fs::remove_dir_all(&folder);
    Ok(scaled(&took, wanted))
}

/// CPU time of a whole job, run here and now.
pub(crate) fn cpu_time(job: &Job) -> Result<Duration> {
    interrupt::check()?;
    let before = children()?;
    job.command().captured()?;
    Ok(children()?.saturating_sub(before))
}

/// Of all children that were waited for.
fn children() -> Result<Duration> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let of = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec() as u64, 1_000 * time.tv_usec() as u32)
    };
    Ok(of(usage.user_time()) + of(usage.system_time()))
}

/// For stress-ng, x264 and zstd, which took so long for [`TRY`].
fn scaled(took: &[Duration], wanted: Duration) -> Sizes {
    let times = |index: usize| {
        // No clock tells less than a millisecond of CPU time.
        let took = took.get(index).map_or(1.0, Duration::as_secs_f64);
        wanted.as_secs_f64() / took.max(0.001)
    };
    Sizes {
        operations: (TRY.operations as f64 * times(0)) as u64,
        frames: ((f64::from(TRY.frames) * times(1)) as u32).clamp(1, MOST_FRAMES),
        bytes: ((TRY.bytes as f64 * times(2)) as u64).clamp(1, MOST_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_follow_from_what_all_cores_carry() {
        let found = Calibration {
            all_cores: 10_000.0,
            alone_p95_us: 301,
            slo_us: slo(301),
            sizes: TRY,
        };
        assert_eq!(found.light(), (175.0, 3_500.0));
        assert_eq!(found.heavy(), (350.0, 7_000.0));
        assert_eq!(found.slo_us, 903);
    }

    #[test]
    fn jobs_grow_until_they_take_what_is_wanted() {
        let took = [500, 250, 1_000].map(Duration::from_millis);
        let sizes = scaled(&took, Duration::from_secs(10));
        let wanted = Sizes {
            operations: 20_000,
            frames: 480,
            bytes: 80 << 20,
        };
        assert_eq!(sizes, wanted);
        // A clock that tells nothing makes no endless job.
        let most = scaled(&[Duration::ZERO; 3], Duration::from_secs(10));
        assert_eq!((most.frames, most.bytes), (MOST_FRAMES, MOST_BYTES));
    }
}
