// SPDX-License-Identifier: Apache-2.0
//! One way once: memcached is asked steadily while the governors play the plan.

use std::fs;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, ensure};
use serde::Serialize;
use weir_memcached_load::interval::Figures;
use weir_memcached_load::server::Program;
use weir_stage::interrupt;
use weir_stage::process::Started;

use crate::cgroups::Cgroups;
use crate::colocation::jobs::Job;
use crate::colocation::load::{Asked, Client};
use crate::colocation::programs::Programs;
use crate::static_plan::calibration::Calibration;
use crate::static_plan::governors::{Governors, Place};
use crate::static_plan::plan::Plan;
use crate::static_plan::timeline::Course;
use crate::static_plan::way::Way;

/// Of cgroups.
pub const NAME: &str = "static-plan";
const POLL: Duration = Duration::from_millis(20);
/// Of the client, until it asks.
const READY: Duration = Duration::from_secs(30);
/// Memcached's, as in document 004.
const THREADS: u32 = 2;
const IN_FLIGHT: u32 = 4_096;

/// The part of all ways.
pub struct Setting<'a> {
    /// The programs that are run.
    pub programs: &'a Programs,
    /// How much.
    pub plan: &'a Plan,
    /// The load and the SLO.
    pub found: &'a Calibration,
    /// All of the plan.
    pub jobs: &'a [Job],
}

/// A way's figures: a line of `rounds.jsonl`. Seconds are from when the first governor was started.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// Counted from 0.
    pub repeat: u32,
    /// The plan.
    pub way: Way,
    /// When that was, in milliseconds since 1970.
    pub zero_ms: u64,
    /// Until all jobs had ended.
    pub makespan_s: f64,
    /// Of each job, by node.
    pub courses: Vec<Course>,
    /// Memcached's, whole ones while jobs ran; their `start_s` too is from zero.
    pub intervals: Vec<Figures>,
}

impl Round {
    /// A time of a course, in seconds from zero.
    #[must_use]
    pub fn seconds(&self, at_ms: u64) -> f64 {
        seconds(self.zero_ms, at_ms)
    }

    /// When a job began and ended, if it ran once and well.
    #[must_use]
    pub fn once(&self, job: &str) -> Option<(f64, f64)> {
        let course = self.courses.iter().find(|course| course.job == job)?;
        let (began, ended) = course.once()?;
        Some((self.seconds(began), self.seconds(ended)))
    }
}

/// Either may be first.
fn seconds(zero_ms: u64, at_ms: u64) -> f64 {
    (at_ms as f64 - zero_ms as f64) / 1e3
}

/// Runs one way. Logs go to `folder`.
///
/// # Errors
/// A program fails, jobs do not end, something is left behind, or a signal has come.
pub fn run(
    setting: &Setting<'_>,
    way: Way,
    (repeat, seed): (u32, u64),
    folder: &Path,
) -> Result<Round> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let cgroups = Cgroups::new(NAME)?;
    let mut server = Program::at(setting.programs.memcached.clone()).start(THREADS, folder)?;
    cgroups.take(server.pid())?;
    let client = Client::new(&setting.programs.load, server.address(), folder)?;
    let found = cgroups.cores()?;
    let asked = asked(setting, seed);
    let mut load = client.start(&asked)?;
    cgroups.keep(load.pid())?;
    let asked_from_ms = begun(&client, &asked, &mut load)?;
    let (zero, zero_ms) = (Instant::now(), unix_ms()?);
    let place = Place {
        cgroups: &cgroups,
        jobs: setting.jobs,
        program: &setting.programs.governor,
        folder,
    };
    let mut governors = Governors::start(way, &place)?;
    while !governors.are_done() {
        interrupt::check()?;
        load.must_live()?;
        let patience = setting.plan.patience;
        ensure!(
            zero.elapsed() < patience,
            "after {} s there are jobs that have not ended; logs and timelines are in {}",
            patience.as_secs(),
            folder.display()
        );
        governors.look(zero.elapsed())?;
        sleep(POLL);
    }
    let told = client.so_far(&asked)?.intervals;
    drop(load);
    let courses = governors.end()?;
    cgroups.put_back(&found)?;
    ensure!(server.is_running()?, "memcached has ended");
    let ends = courses.iter().flat_map(|course| &course.ended_ms);
    let makespan_s = ends
        .map(|(at, _)| seconds(zero_ms, *at))
        .fold(0.0, f64::max);
    let shift_s = seconds(zero_ms, asked_from_ms);
    Ok(Round {
        repeat,
        way,
        zero_ms,
        makespan_s,
        courses,
        intervals: within(told, shift_s, makespan_s),
    })
}

/// The intervals that are whole between zero and the end, with `shift_s` between their zero and ours.
fn within(told: Vec<Figures>, shift_s: f64, end_s: f64) -> Vec<Figures> {
    let shifted = told.into_iter().map(|figures| Figures {
        start_s: figures.start_s + shift_s,
        ..figures
    });
    let is_within =
        |figures: &Figures| figures.start_s >= 0.0 && figures.start_s + figures.length_s <= end_s;
    shifted.filter(is_within).collect()
}

fn asked(setting: &Setting<'_>, seed: u64) -> Asked {
    let rate = setting.found.rate();
    Asked {
        name: "load",
        rates: (rate, rate),
        interval: setting.plan.interval,
        // Whoever waits longer gives up before it ends.
        length: READY + 2 * setting.plan.patience,
        seed,
        slo_us: setting.found.slo_us,
        in_flight: IN_FLIGHT,
        metrics: None,
    }
}

/// Waits until memcached is asked; when that was, in milliseconds since 1970.
fn begun(client: &Client, asked: &Asked, load: &mut Started) -> Result<u64> {
    let begun = Instant::now();
    loop {
        interrupt::check()?;
        load.must_live()?;
        if let Some(at_ms) = client.so_far(asked)?.began_ms {
            return Ok(at_ms);
        }
        ensure!(begun.elapsed() < READY, "the client does not ask");
        sleep(POLL);
    }
}

fn unix_ms() -> Result<u64> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH)?;
    Ok(u64::try_from(since.as_millis())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::static_plan::figures::tests::interval;

    #[test]
    fn intervals_count_that_are_whole_while_jobs_run() {
        // The load began a second and a half before the governors.
        let told = (0..6).map(|second| interval(f64::from(second), 1_000, false));
        let kept = within(told.collect(), -1.5, 3.5);
        let starts: Vec<f64> = kept.iter().map(|figures| figures.start_s).collect();
        assert_eq!(starts, [0.5, 1.5, 2.5]);
    }
}
