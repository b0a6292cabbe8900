// SPDX-License-Identifier: Apache-2.0
//! Sizes that suit the machine, found at the start of a run.
//!
//! ```text
//!  memcached on one core, asked for more than it can ──> requests a second it carries ──> light, heavy
//!  memcached alone on all cores, light load ──> median of p95 ──> SLO
//!  each job, small ──> its CPU time ──> its size
//! ```

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use serde::Serialize;
use weir_memcached_load::interval::Figures;
use weir_memcached_load::server::Program;
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::jobs::{self, Sizes};
use crate::load::{Asked, Client};
use crate::plan::Plan;
use crate::programs::Programs;
use crate::rounds::wait;
use crate::tree::Tree;

/// More than one core carries on any machine we know of.
const TOO_MANY: f64 = 40_000.0;
/// Keeps memcached busy without letting it fall behind for long.
const FEW: u32 = 64;
/// Of the loads' highest rate, as a share of what one core carries. Light leaves a core to others; heavy needs more
/// than one.
const LIGHT: f64 = 0.6;
const HEAVY: f64 = 1.3;
/// Document 004's rates are from 5,000 to 100,000.
const LEAST: f64 = 1.0 / 20.0;
/// The limit of an interval's p95, times that of memcached alone.
const SLO: f64 = 5.0;
/// Of a job's first try: some tenths of a second.
const TRY: Sizes = Sizes {
    operations: 1_000,
    frames: 12,
    bytes: 2 << 20,
};
/// 115 KB each: a job that would need more is shorter than asked for.
const MOST_FRAMES: u32 = 1_500;
const MOST_BYTES: u64 = 200 << 20;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Calibration {
    /// Requests of 100 keys a second that memcached carries on one core.
    pub one_core: f64,
    /// The p95 of memcached alone at the light load: of half of the intervals it is no more.
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
        let tree = Tree::new()?;
        let server = Program::at(programs.memcached.clone()).start(2, folder)?;
        tree.take(server.pid())?;
        let client = Client {
            program: programs.load.clone(),
            address: server.address().to_owned(),
            folder: folder.to_owned(),
        };
        client.preload()?;
        let all = tree.told()?;
        tree.confine(first(&all))?;
        let asked = |name: &str, rates, in_flight| Asked {
            name: name.to_owned(),
            rates,
            interval: plan.calibrate,
            length: plan.calibrate,
            seed,
            slo_us: 1_000_000,
            in_flight,
            metrics: None,
        };
        let full = asked("one-core", (TOO_MANY, TOO_MANY), FEW);
        wait(&mut client.start(&full)?)?;
        let one_core = client.told(&full)?.intervals[0].achieved_qps;
        ensure!(
            one_core > 100.0,
            "memcached on one core answers {one_core:.0} requests a second: too few to measure anything"
        );
        tree.confine(&all)?;
        let light = Asked {
            interval: plan.calibrate / 4,
            length: 2 * plan.calibrate,
            ..asked("alone", light(one_core), 4_096)
        };
        wait(&mut client.start(&light)?)?;
        let alone = typical(&client.told(&light)?.intervals);
        let alone_p95_us = alone.context("memcached alone did not answer 95 of 100 requests")?;
        drop((server, tree));
        Ok(Self {
            one_core,
            alone_p95_us,
            slo_us: slo(alone_p95_us),
            sizes: sizes(programs, plan.job, folder, seed)?,
        })
    }

    /// Least and most of the light load, requests a second.
    #[must_use]
    pub fn light(&self) -> (f64, f64) {
        light(self.one_core)
    }

    /// Least and most of the heavy load.
    #[must_use]
    pub fn heavy(&self) -> (f64, f64) {
        rates(self.one_core, HEAVY)
    }
}

fn light(one_core: f64) -> (f64, f64) {
    rates(one_core, LIGHT)
}

fn rates(one_core: f64, share: f64) -> (f64, f64) {
    let most = one_core * share;
    (most * LEAST, most)
}

fn slo(alone_p95_us: u64) -> u64 {
    (alone_p95_us as f64 * SLO).ceil() as u64
}

/// The median of the intervals' p95: one stall of the machine does not make the limit.
fn typical(intervals: &[Figures]) -> Option<u64> {
    let p95 = |interval: &Figures| interval.latency.p95_us.unwrap_or(u64::MAX);
    let mut all: Vec<u64> = intervals.iter().map(p95).collect();
    all.sort_unstable();
    all.get(all.len() / 2)
        .copied()
        .filter(|p95| *p95 < u64::MAX)
}

/// The first core of a list.
fn first(cores: &str) -> &str {
    cores.split([',', '-']).next().unwrap_or("0")
}

/// Tries each job small.
fn sizes(programs: &Programs, wanted: Duration, folder: &Path, seed: u64) -> Result<Sizes> {
    let folder = folder.join("work");
    let mut took = Vec::new();
    for job in jobs::make(programs, TRY, &folder, seed)? {
        interrupt::check()?;
        let before = children()?;
        job.command().captured()?;
        took.push(children()?.saturating_sub(before));
    }
    let _ = std::fs::remove_dir_all(&folder);
    Ok(scaled(&took, wanted))
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
    fn rates_follow_from_what_one_core_carries() {
        let found = Calibration {
            one_core: 10_000.0,
            alone_p95_us: 301,
            slo_us: slo(301),
            sizes: TRY,
        };
        assert_eq!(found.light(), (300.0, 6_000.0));
        assert_eq!(found.heavy(), (650.0, 13_000.0));
        assert_eq!(found.slo_us, 1_505);
    }

    #[test]
    fn jobs_grow_until_they_take_what_is_wanted() {
        let took = [500, 250, 1_000].map(Duration::from_millis);
        let sizes = scaled(&took, Duration::from_secs(10));
        let wanted = Sizes {
            operations: 20_000,
            frames: 480,
            bytes: 20 << 20,
        };
        assert_eq!(sizes, wanted);
        // A clock that tells nothing makes no endless job.
        let most = scaled(&[Duration::ZERO; 3], Duration::from_secs(10));
        assert_eq!((most.frames, most.bytes), (MOST_FRAMES, MOST_BYTES));
    }

    #[test]
    fn one_core_is_the_first_of_them() {
        for (list, core) in [("0-1", "0"), ("2,4", "2"), ("7", "7")] {
            assert_eq!(first(list), core);
        }
    }
}
