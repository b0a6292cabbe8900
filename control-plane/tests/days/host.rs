// SPDX-License-Identifier: Apache-2.0
//! SIMULATED host: cores, a queue by class, a Prometheus page, and lies.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_control::config::Config;
use weir_fleet::poll::{Fault, PollError};

use crate::control::{self, CLUSTER};

pub(crate) const CORES: usize = 2;
/// Mean core time of a job.
pub(crate) const RUN: Duration = Duration::from_millis(800);

/// Levels move on a queue of some jobs' time.
const TARGET: &str = "2s";
/// So little that it counts: cache contents are assumed from reports.
const MEMORY: &str = "1MiB";

/// weir-control's configuration with so many of the hosts.
pub(crate) fn config(hosts: usize) -> Arc<Config> {
    let host = |number| {
        let address = address(number);
        format!("{{ address: \"{address}\", capacity_millicores: 2000 }}")
    };
    let hosts: Vec<String> = (0..hosts).map(host).collect();
    control::config(&format!(
        "clusters:\n  {CLUSTER}:\n    policy: {{ overload: dagor }}\n    dagor: {{ target: {TARGET} }}\n    \
         cache_shards: 2\n    hosts: [ {} ]\n    shrink_after: 0s\n    scrape: {{}}\nmemory: {{ limit: {MEMORY} }}\n",
        hosts.join(", ")
    ))
}

fn address(number: usize) -> String {
    format!("10.0.0.{}:9000", number + 1)
}

/// Number of a request.
pub(crate) type Job = u64;

/// What a host says in place of its figures.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Lie {
    /// More than any host can have.
    Absurd,
    Negative,
    NotANumber,
    Garbage,
    /// Nothing runs and nothing waits.
    Idle,
}

pub(crate) const LIES: [Lie; 5] = [
    Lie::Absurd,
    Lie::Negative,
    Lie::NotANumber,
    Lie::Garbage,
    Lie::Idle,
];

pub(crate) struct Host {
    pub(crate) address: String,
    queue: BTreeMap<u8, VecDeque<(Job, Duration)>>,
    running: Vec<(Duration, Job)>,
    /// Of all jobs that have begun: seconds that they waited, and how many they are.
    waited: (f64, u64),
    rng: SmallRng,
    pub(crate) lie: Option<Lie>,
    /// weir-control's polls time out, or are refused.
    pub(crate) hidden: Option<bool>,
    /// Sidecars do not reach it.
    pub(crate) cut_off: bool,
}

impl Host {
    pub(crate) fn new(number: usize, seed: u64) -> Self {
        Self {
            address: address(number),
            queue: BTreeMap::new(),
            running: Vec::new(),
            waited: (0.0, 0),
            rng: SmallRng::seed_from_u64(seed ^ number as u64),
            lie: None,
            hidden: None,
            cut_off: false,
        }
    }

    pub(crate) fn take(&mut self, job: Job, class: u8, now: Duration) {
        self.queue.entry(class).or_default().push_back((job, now));
        self.fill(now);
    }

    /// The jobs that end until then.
    pub(crate) fn advance(&mut self, now: Duration) -> Vec<Job> {
        let mut ended = Vec::new();
        while let Some(next) = self
            .running
            .iter()
            .copied()
            .min()
            .filter(|next| next.0 <= now)
        {
            self.running.retain(|other| *other != next);
            ended.push(next.1);
            self.fill(next.0);
        }
        ended
    }

    /// The process begins anew; whose requests are lost.
    pub(crate) fn reset(&mut self) -> Vec<Job> {
        let queued = std::mem::take(&mut self.queue).into_values().flatten();
        let running = std::mem::take(&mut self.running).into_iter();
        self.waited = (0.0, 0);
        let queued = queued.map(|(job, _)| job);
        queued.chain(running.map(|(_, job)| job)).collect()
    }

    /// Nobody waits for the job any more.
    pub(crate) fn cancel(&mut self, job: Job, now: Duration) {
        for queue in self.queue.values_mut() {
            queue.retain(|(other, _)| *other != job);
        }
        self.running.retain(|(_, other)| *other != job);
        self.fill(now);
    }

    pub(crate) fn jobs(&self) -> usize {
        self.running.len() + self.queued()
    }

    fn queued(&self) -> usize {
        self.queue.values().map(VecDeque::len).sum()
    }

    fn fill(&mut self, now: Duration) {
        while self.running.len() < CORES {
            let next = self.queue.values_mut().find_map(VecDeque::pop_front);
            let Some((job, came)) = next else { return };
            let run = RUN.mul_f64(self.rng.random_range(0.5..1.5));
            self.running.push((now + run, job));
            self.waited.0 += now.saturating_sub(came).as_secs_f64();
            self.waited.1 += 1;
        }
    }

    /// What weir-control gets of it.
    pub(crate) fn answer(&self) -> Result<String, PollError> {
        match self.hidden {
            None => Ok(self.page()),
            Some(true) => Err(PollError::new(Fault::Refused, "nobody listens")),
            Some(false) => Err(PollError::new(Fault::TimedOut, "no answer")),
        }
    }

    /// Its metrics.
    fn page(&self) -> String {
        let (jobs, mut queued) = (self.jobs().to_string(), String::new());
        for (class, queue) in &self.queue {
            let waiting = queue.len();
            queued += &format!("weir_host_queued{{priority=\"{class}\"}} {waiting}\n");
        }
        if queued.is_empty() {
            queued = "weir_host_queued 0\n".to_owned();
        }
        let (seconds, count) = self.waited;
        let page = |jobs: &str, queued: &str, seconds: &str, count: &str| {
            format!(
                "weir_host_in_progress {jobs}\n{queued}weir_host_queuing_delay_seconds_sum {seconds}\n\
                 weir_host_queuing_delay_seconds_count {count}\n"
            )
        };
        match self.lie {
            None => page(&jobs, &queued, &seconds.to_string(), &count.to_string()),
            Some(Lie::Absurd) => page("1e18", "weir_host_queued 1e18\n", "1e300", "1e15"),
            Some(Lie::Negative) => page("-5", "weir_host_queued -7\n", "-1", "-2"),
            Some(Lie::NotANumber) => page("NaN", "weir_host_queued NaN\n", "NaN", "+Inf"),
            Some(Lie::Garbage) => "\u{0}weir_host_in_progress{ {{{ 5 5 5\n".to_owned(),
            Some(Lie::Idle) => page("0", "weir_host_queued 0\n", "0", "0"),
        }
    }

    /// Its load, as it is on answers.
    pub(crate) fn load(&self) -> String {
        let load = |jobs: &str, queued: &str| {
            format!(
                "TEXT named_metrics.weir.in_progress={jobs},named_metrics.weir.queued.0={queued}"
            )
        };
        match self.lie {
            None => load(&self.jobs().to_string(), &self.queued().to_string()),
            Some(Lie::Absurd) => load("1e18", "1e18"),
            Some(Lie::Negative) => load("-1", "-1"),
            Some(Lie::NotANumber) => load("NaN", "inf"),
            Some(Lie::Garbage) => "TEXT ,,=,".to_owned(),
            Some(Lie::Idle) => load("0", "0"),
        }
    }
}
