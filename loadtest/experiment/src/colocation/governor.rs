// SPDX-License-Identifier: Apache-2.0
//! weir-governor, told of memcached's cgroup and of the jobs.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use serde::Deserialize;
use serde_json::{Value, json};
use weir_memcached_load::page::METRIC;

use super::batch::Ended;
use super::jobs::Job;
use super::way::{JOBS, MEMCACHEDS, Way};
use crate::cgroups::Cgroups;
use crate::governor::Governor;

/// Between two questions: jobs take seconds.
const EVERY: Duration = Duration::from_millis(200);

/// What it governs.
pub struct Place<'a> {
    /// The service's cgroup, and where those of jobs are made.
    pub cgroups: &'a Cgroups,
    /// In the order of their queues.
    pub jobs: &'a [Job],
    /// The target of `latency_slack`.
    pub slo_us: u64,
    /// Where latencies are shown.
    pub metrics: SocketAddr,
    /// For its files.
    pub folder: &'a Path,
}

/// Its jobs, by what it says of them.
pub struct Jobs {
    governor: Governor,
    count: usize,
    next: Duration,
    ended: Vec<Ended>,
}

/// What is read of `/state`.
#[derive(Deserialize)]
struct State {
    shares: Shares,
}

#[derive(Deserialize)]
struct Shares {
    jobs: Vec<JobState>,
}

#[derive(Deserialize)]
struct JobState {
    name: String,
    state: String,
    code: Option<i32>,
}

impl Jobs {
    /// Starts it and waits until it governs.
    ///
    /// # Errors
    /// It refuses its configuration, or does not say that it is ready.
    pub fn start(way: Way, program: &Path, place: &Place<'_>) -> Result<Self> {
        let configuration = configuration(way, place);
        let governor = Governor::start(program, None, &configuration, place.folder)?;
        match way.pinned() {
            Some(core) => place.cgroups.keep_on(governor.pid(), &[core].into())?,
            None => place.cgroups.keep(governor.pid())?,
        }
        Ok(Self::of(governor, place.jobs.len()))
    }

    /// Those of a governor that has so many.
    #[must_use]
    pub fn of(governor: Governor, count: usize) -> Self {
        Self {
            governor,
            count,
            next: Duration::ZERO,
            ended: Vec::new(),
        }
    }

    /// Sees which jobs have ended, some times a second. `now` is from the round's start.
    ///
    /// # Errors
    /// It has ended itself, or does not say.
    pub fn look(&mut self, now: Duration) -> Result<()> {
        self.governor.must_live()?;
        if now < self.next || self.all().is_some() {
            return Ok(());
        }
        self.next = now + EVERY;
        let page = self.governor.page("/state")?;
        let state: State = serde_json::from_str(&page).context("the governor's state")?;
        for job in state.shares.jobs {
            let has_ended = ["finished", "failed"].contains(&job.state.as_str());
            if has_ended && !self.ended.iter().any(|ended| ended.name == job.name) {
                self.ended.push(Ended {
                    name: job.name,
                    started_s: None,
                    ended_s: now.as_secs_f64(),
                    code: job.code,
                });
            }
        }
        Ok(())
    }

    /// All jobs, once all have ended.
    #[must_use]
    pub fn all(&self) -> Option<&[Ended]> {
        (self.ended.len() == self.count).then_some(&self.ended)
    }

    /// Ends it; it puts everything back.
    ///
    /// # Errors
    /// It could not, or did not end.
    pub fn end(self) -> Result<()> {
        self.governor.end()
    }
}

/// Two cores: one is memcached's, and one is its or a job's.
fn configuration(way: Way, place: &Place<'_>) -> Value {
    let core_policy = match way {
        Way::LatencySlack => json!({ "latency_slack": {
            "least": MEMCACHEDS, "elastic": JOBS, "batch": "none",
            "target": format!("{}us", place.slo_us), "calm": "1s",
        }}),
        // `calm` of both is the window that the latency is of: with the client on the same cores they would go back
        // and forth every tick.
        _ => json!({ "blocks": {
            "reserved": MEMCACHEDS, "small": JOBS, "large": "none", "calm": "1s",
        }}),
    };
    let jobs: Vec<Value> = place.jobs.iter().map(job).collect();
    json!({
        "service": { "cgroup": place.cgroups.service() },
        "core_policy": core_policy,
        "jobs": jobs,
        "batch": {
            "cgroup": place.cgroups.batch(),
            // Their files are in a folder of this user's.
            "user": rustix::process::geteuid().as_raw(),
            "logs": place.folder.join("jobs"),
            "on_stop": "end",
        },
        "tail": {
            "source": "prometheus",
            "url": format!("http://{}/metrics", place.metrics),
            "metric": METRIC,
            "every": "250ms",
            "window": "1s",
            "quantile": 0.95,
        },
        "admin": { "listen": "127.0.0.1:0" },
        "state_directory": place.folder.join("state"),
    })
}

/// A job as a governor's configuration has it.
pub(crate) fn job(job: &Job) -> Value {
    let mut written = json!({
        "name": job.name,
        "queue": job.queue,
        "threads": job.threads,
        "command": job.line,
        "directory": job.folder,
    });
    if let Some(libraries) = job.libraries() {
        written["environment"] = json!({ "LD_LIBRARY_PATH": libraries });
    }
    written
}
