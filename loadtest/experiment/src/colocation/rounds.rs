// SPDX-License-Identifier: Apache-2.0
//! One way of one round: memcached is asked lightly and then heavily, with the jobs beside it or after.

mod scene;

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;
use weir_memcached_load::interval::Figures;
use weir_memcached_load::server::Program;
use weir_mesh::Ports;
use weir_stage::interrupt;
use weir_stage::process::Started;

use self::scene::{Scene, Work};
use crate::cgroups::Cgroups;
use crate::colocation::batch::{Batch, Ended};
use crate::colocation::calibration::Calibration;
use crate::colocation::governor::{self, Jobs};
use crate::colocation::jobs::Job;
use crate::colocation::load::{Asked, Client, Told};
use crate::colocation::plan::Stepping;
use crate::colocation::programs::Programs;
use crate::colocation::quiet::Page;
use crate::colocation::samples::{Sample, Samples};
use crate::colocation::way::Way;
use crate::variant::Variant;

const POLL: Duration = Duration::from_millis(20);
/// memcached's threads: one for each core of the machine that this is for.
const THREADS: u32 = 2;

/// The part of all ways.
pub struct Setting<'a> {
    /// The programs that are run.
    pub programs: &'a Programs,
    /// Rates and the SLO.
    pub found: &'a Calibration,
    /// The batch.
    pub jobs: &'a [Job],
    /// For the jobs that are left when the load is over.
    pub patience: Duration,
}

/// A way's figures of a round: a line of `rounds.jsonl`.
#[derive(Clone, Debug, Serialize)]
pub struct Round {
    /// Counted from 0.
    pub repeat: u32,
    /// How often the load stepped.
    pub interval_s: f64,
    /// The division of the cores.
    pub way: Way,
    /// The light load.
    pub light: Part,
    /// The heavy load.
    pub heavy: Part,
    /// From the start until the loads were over.
    pub load_s: f64,
    /// From the start until the last job had ended.
    pub batch_s: f64,
    /// In the order of their ends.
    pub jobs: Vec<Ended>,
    /// Over time; not in the line, but in a file of its own.
    #[serde(skip)]
    pub samples: Vec<Sample>,
}

/// A load.
#[derive(Clone, Debug, Serialize)]
pub struct Part {
    /// From the round's start to the load's.
    pub start_s: f64,
    /// How many intervals there were,
    pub intervals: u64,
    /// and how many of them violated the SLO.
    pub violated: u64,
    /// Requests that were due,
    pub due: u64,
    /// and those with a good answer.
    pub answered: u64,
    /// In order.
    pub figures: Vec<Figures>,
}

/// Which round it is.
#[derive(Clone, Copy, Debug)]
pub struct Which {
    /// Counted from 0.
    pub repeat: u32,
    /// How the load steps.
    pub stepping: Stepping,
    /// Of the loads.
    pub seed: u64,
}

/// Runs one way. Logs go to `folder`.
///
/// # Errors
/// A program or a job fails, jobs do not end, something is left behind, or a signal has come.
pub fn run(setting: &Setting<'_>, way: Way, which: Which, folder: &Path) -> Result<Round> {
    fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
    let cgroups = Cgroups::new("colocation")?;
    let mut server = Program::at(setting.programs.memcached.clone()).start(THREADS, folder)?;
    cgroups.take(server.pid())?;
    let client = Client::new(&setting.programs.load, server.address(), folder)?;
    let found = cgroups.cores()?;
    let mut ports = Ports::of_this_process();
    let metrics = ports.loopback()?;
    let zero = Instant::now();
    let place = governor::Place {
        cgroups: &cgroups,
        jobs: setting.jobs,
        slo_us: setting.found.slo_us,
        metrics,
        folder,
    };
    let mut scene = Scene {
        cgroups: &cgroups,
        work: work(setting, way, &place)?,
        jobs: setting.jobs,
        samples: Samples::default(),
        zero,
    };
    let mut load = |number, name, rates| {
        let asked = asked(setting, which, (number, name, rates), metrics);
        scene.load(&client, &asked)
    };
    let light = load(0, "light", setting.found.light())?;
    let heavy = load(1, "heavy", setting.found.heavy())?;
    let load_s = zero.elapsed().as_secs_f64();
    let quiet = Page::at(metrics)?;
    let jobs = scene.finish(setting.patience)?;
    drop(quiet);
    let (work, samples) = (scene.work, scene.samples.all);
    if let Work::Governed(governor) = work {
        governor.end()?;
    }
    cgroups.put_back(&found)?;
    ensure!(server.is_running()?, "memcached has ended");
    all_succeeded(&jobs, folder)?;
    let batch_s = jobs.iter().map(|job| job.ended_s).fold(0.0, f64::max);
    Ok(Round {
        repeat: which.repeat,
        interval_s: which.stepping.interval.as_secs_f64(),
        way,
        light,
        heavy,
        load_s,
        batch_s,
        jobs,
        samples,
    })
}

/// A load of a round, by its number, name and rates.
fn asked(
    setting: &Setting<'_>,
    which: Which,
    (number, name, rates): (u64, &'static str, (f64, f64)),
    metrics: SocketAddr,
) -> Asked {
    Asked {
        name,
        rates,
        interval: which.stepping.interval,
        length: which.stepping.length,
        seed: which.seed ^ number,
        slo_us: setting.found.slo_us,
        in_flight: 4_096,
        metrics: Some(metrics),
    }
}

/// The starter of the jobs: the governor, or the lab itself.
fn work(setting: &Setting<'_>, way: Way, place: &governor::Place<'_>) -> Result<Work> {
    if way.is_governed() {
        let jobs = Jobs::start(way, &setting.programs.governor, place)?;
        return Ok(Work::Governed(Box::new(jobs)));
    }
    Ok(Work::Own {
        batch: Batch::new(setting.jobs, place.folder.to_owned()),
        after: way == Way::AllToMemcached,
    })
}

fn all_succeeded(jobs: &[Ended], folder: &Path) -> Result<()> {
    for job in jobs {
        ensure!(
            job.code == Some(0),
            "{} ended with {:?}; its log is in {}",
            job.name,
            job.code,
            folder.display()
        );
    }
    Ok(())
}

impl Part {
    fn of(start_s: f64, told: Told) -> Self {
        Self {
            start_s,
            intervals: told.total.intervals,
            violated: told.total.violated,
            due: told.total.counts.due,
            answered: told.total.counts.answered,
            figures: told.intervals,
        }
    }
}

/// Waits until it has ended.
///
/// # Errors
/// It failed, or a signal has come.
pub fn wait(process: &mut Started) -> Result<()> {
    while !has_ended(process)? {
        interrupt::check()?;
        sleep(POLL);
    }
    Ok(())
}

fn has_ended(process: &mut Started) -> Result<bool> {
    match process.ended()? {
        None => Ok(false),
        Some(status) if status.success() => Ok(true),
        Some(status) => bail!(process.failure(status)),
    }
}

/// The folder of a way of a round, below the run's.
#[must_use]
pub fn folder(run: &Path, which: Which, way: Way) -> PathBuf {
    let interval = which.stepping.interval.as_secs();
    run.join(format!("{}-{interval}s-{}", which.repeat, way.name()))
}
