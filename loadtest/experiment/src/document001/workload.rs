// SPDX-License-Identifier: Apache-2.0
//! What is sent, the same in every run.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result};
use weir_replay::workload::{self as file, Request};
use weir_sim::document001::Requests;
use weir_sim::workload::{HIGH, Job, Key, Work as JobWork};

use super::plan::{Plan, Stretch, Work};
use crate::demo;

/// Requests, and how long they come in this machine's time.
pub(super) struct Workload {
    pub(super) file: PathBuf,
    /// The folder of feeds, where hosts really work.
    pub(super) feeds: Option<PathBuf>,
    pub(super) description: String,
    pub(super) lasts: Duration,
    /// Where hosts are emulated: the same requests in the document's time, and what they may find cached.
    pub(super) jobs: Vec<Job>,
    pub(super) keys: Vec<Key>,
}

impl Workload {
    pub(super) fn prepare(plan: &Plan, programs: &demo::Programs, folder: &Path) -> Result<Self> {
        let made = match &plan.work {
            Work::Emulated(stretch) => Self::emulated(plan, stretch, folder),
            Work::Real(feeds) => {
                demo::workload::feeds::prepare(programs, feeds, folder).map(|made| Self {
                    file: made.file,
                    feeds: made.feeds,
                    description: made.description,
                    lasts: feeds.params.duration,
                    jobs: Vec::new(),
                    keys: Vec::new(),
                })
            }
        };
        made.context("making the workload")
    }

    fn emulated(plan: &Plan, stretch: &Stretch, folder: &Path) -> Result<Self> {
        let until = stretch.from + stretch.lasts;
        let hours = until.as_secs_f64() / 3600.0;
        let all = Requests::new(&stretch.params, plan.seed, hours).as_trace();
        let keys = all.keys();
        let jobs: Vec<Job> = all.filter_map(|job| shifted(job, stretch)).collect();
        let path = folder.join("workload.ndjson");
        let requests: Vec<Request> = jobs.iter().map(|job| request(job, &keys, plan)).collect();
        file::save(&requests, &path).with_context(|| format!("writing {}", path.display()))?;
        Ok(Self {
            file: path,
            feeds: None,
            description: describe(&jobs, plan, stretch),
            lasts: plan.compressed(stretch.lasts),
            jobs,
            keys,
        })
    }
}

/// The job from the beginning of the stretch on, its joblets in one run, as an emulated host does it.
fn shifted(job: Job, stretch: &Stretch) -> Option<Job> {
    let at = job.at.checked_sub(stretch.from)?;
    (at < stretch.lasts).then(|| Job {
        at,
        work: JobWork::Whole(job.work.core_time()),
        ..job
    })
}

fn request(job: &Job, keys: &[Key], plan: &Plan) -> Request {
    let micros = |time| plan.compressed(time).as_micros() as u64;
    let key = job.key.and_then(|key| keys.get(key as usize));
    Request {
        t_us: micros(job.at),
        key: key.map_or_else(String::new, |key| key.name().to_owned()),
        priority: if job.class == HIGH { "high" } else { "low" }.to_owned(),
        user: String::new(),
        run_us: micros(job.work.core_time()),
        bytes: job.bytes,
        body: None,
        sender: job.sender.map(|sender| sender.to_string()),
    }
}

fn describe(jobs: &[Job], plan: &Plan, stretch: &Stretch) -> String {
    let busy: f64 = jobs
        .iter()
        .map(|job| job.work.core_time().as_secs_f64())
        .sum();
    let cores = (plan.hosts * plan.cores) as f64;
    format!(
        "workload: {minutes:.0} minutes from {hour}:{minute:02} of the requests that weir-sim makes up from document 001's text \
         (seed {seed}), {speed} times as fast: {requests} requests, {rate:.0}/s; each is one joblet\n\
         load:     run times fill {load:.0} % of the cores; fetching absent data comes on top",
        minutes = stretch.lasts.as_secs_f64() / 60.0,
        hour = stretch.from.as_secs() / 3600,
        minute = stretch.from.as_secs() / 60 % 60,
        seed = plan.seed,
        speed = plan.speed,
        requests = jobs.len(),
        rate = jobs.len() as f64 / plan.compressed(stretch.lasts).as_secs_f64(),
        load = 100.0 * busy / stretch.lasts.as_secs_f64() / cores,
    )
}
