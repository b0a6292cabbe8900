// SPDX-License-Identifier: Apache-2.0
//! Part 3: the six jobs on a node of four cores and one of eight; memcached has a third node to itself.

use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use weir_governor::cores::static_plan::{Params as Plan, PlanNode, StaticPlan, Step};
use weir_governor::cores::{CorePlan, Cores, Policy, Seen};
use weir_governor::jobs::{Job, Queue};

use super::batch::Batch;
use super::chance::lognormal;
use super::history::{History, Interval};
use super::jobs::Scaling;
use super::memcached::{Memcached, Part};
use super::params::Params;
use super::published::{JOBS, PART3_S};

/// Cores of the nodes that jobs can have.
pub(super) const NODES: [(&str, u32); 2] = [("four", 4), ("eight", 8)];
/// Memcached's node and its cores, all of which it has.
const SERVICE: (&str, u32) = ("two", 2);
/// The objective (part 3.1): a p95 above it is a violation.
pub const OBJECTIVE: Duration = Duration::from_millis(2);
/// `--scan 30000:30500:10 -t 20` (part 3.1): the first rate, and after so many seconds so much more.
const SCAN: (f64, f64, f64) = (30_000.0, 20.0, 10.0);
/// "Checking the job status every second" (part 3.2).
const TICK_S: f64 = 1.0;
const STEP_S: f64 = 0.01;

/// Where a job runs: node, first core and number of cores, threads, and after whom.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Row {
    node: &'static str,
    first: u32,
    cores: u32,
    threads: u32,
    after: &'static [&'static str],
}

const fn row(
    node: &'static str,
    first: u32,
    cores: u32,
    threads: u32,
    after: &'static [&'static str],
) -> Row {
    Row {
        node,
        first,
        cores,
        threads,
        after,
    }
}

/// As part 3.2 tells, in the order of [`JOBS`]. It gives numbers of cores; which ones they are is ours, as are those of
/// dedup and the threads of dedup and canneal.
const DOCUMENT: [Row; 6] = [
    row("four", 0, 4, 4, &["ferret"]),
    row("eight", 0, 5, 5, &["freqmine"]),
    row("four", 0, 4, 4, &[]),
    row("eight", 0, 7, 6, &[]),
    row("eight", 0, 4, 4, &["blackscholes"]),
    row("eight", 5, 3, 2, &["freqmine"]),
];

/// How a plan went.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    /// Seconds from each job's start to its end, without the start itself, in the order of [`JOBS`].
    pub jobs_s: [f64; 6],
    /// Seconds until all had ended.
    pub total_s: f64,
    /// The same of each node, in the order of [`NODES`].
    pub nodes_s: [f64; NODES.len()],
    /// Of memcached's intervals until then, the share whose p95 was above [`OBJECTIVE`].
    pub violations: f64,
    /// For figures.
    pub history: History,
}

/// A plan with the threads of each job.
#[derive(Debug, Clone, PartialEq)]
pub struct Written {
    pub(super) plan: Plan,
    pub(super) threads: [u32; 6],
}

impl Written {
    /// Document 004's.
    #[must_use]
    pub fn document() -> Self {
        let step = |(job, row): (&str, Row)| Step {
            job: job.to_owned(),
            node: row.node.to_owned(),
            cores: (row.first..row.first + row.cores).collect(),
            after: row.after.iter().map(|job| (*job).to_owned()).collect(),
        };
        let steps = JOBS.into_iter().zip(DOCUMENT).map(step).collect();
        Self::new(steps, DOCUMENT.map(|row| row.threads))
    }

    pub(super) fn new(steps: Vec<Step>, threads: [u32; 6]) -> Self {
        let node = |(name, cores): (&str, u32)| PlanNode {
            name: name.to_owned(),
            cores: (0..cores).collect(),
            service: Cores::NONE,
        };
        let mut nodes = NODES.map(node).to_vec();
        let (name, cores) = SERVICE;
        nodes.push(PlanNode {
            service: (0..cores).collect(),
            ..node((name, cores))
        });
        let plan = Plan {
            nodes,
            steps,
            ..Plan::default()
        };
        Self { plan, threads }
    }

    /// The same with all jobs created at once.
    #[must_use]
    pub fn at_once(mut self) -> Self {
        for step in &mut self.plan.steps {
            step.after.clear();
        }
        self
    }

    /// The same with fft at once, beside freqmine with so many cores: what the document tried first, without a word on
    /// cores. With seven they share two.
    #[must_use]
    pub fn fft_beside_freqmine(mut self, cores: u32) -> Self {
        self.step("fft").after.clear();
        self.step("freqmine").cores = (0..cores).collect();
        self
    }

    /// The same with all eight cores, and a thread for each, for one of the jobs that run there alone: what the
    /// document suggests and has not tried.
    #[must_use]
    pub fn with_all_cores(mut self, job: &str) -> Self {
        let (node, cores) = NODES[1];
        let index = JOBS.iter().position(|one| *one == job);
        let step = self.step(job);
        debug_assert_eq!(step.node, node);
        step.cores = (0..cores).collect();
        self.threads[index.expect("a job of the document")] = cores;
        self
    }

    fn step(&mut self, job: &str) -> &mut Step {
        let mut steps = self.plan.steps.iter_mut();
        steps
            .find(|step| step.job == job)
            .expect("a job of the document")
    }

    /// By job: node, cores, threads and after whom.
    #[must_use]
    pub fn rows(&self) -> Vec<[String; 5]> {
        let row = |(step, threads): (&Step, &u32)| {
            [
                step.job.clone(),
                step.node.clone(),
                step.cores.to_string(),
                threads.to_string(),
                step.after.join(", "),
            ]
        };
        self.plan.steps.iter().zip(&self.threads).map(row).collect()
    }

    fn jobs(&self) -> Vec<Job> {
        let job = |(name, threads): (&str, u32)| Job {
            name: name.to_owned(),
            queue: Queue::Long,
            threads,
        };
        JOBS.into_iter().zip(self.threads).map(job).collect()
    }

    /// Plays it, a governor on each node; nothing is by chance.
    #[must_use]
    pub fn play(&self, params: &Params) -> Outcome {
        self.play_work(params, &work(params), None)
    }

    /// The same where chance makes jobs longer or shorter, and memcached's latencies.
    #[must_use]
    pub fn play_by_chance(&self, params: &Params, seed: u64) -> Outcome {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0x0403);
        let scaling = Scaling::all();
        let mut work = work(params);
        for (work, scaling) in work.iter_mut().zip(&scaling) {
            *work *= lognormal(&mut rng, scaling.spread());
        }
        self.play_work(params, &work, Some(rng))
    }

    fn play_work(&self, params: &Params, work: &[f64; 6], chance: Option<SmallRng>) -> Outcome {
        let mut outcome = Outcome {
            jobs_s: [0.0; 6],
            total_s: 0.0,
            nodes_s: [0.0; NODES.len()],
            violations: 0.0,
            history: History::default(),
        };
        for (index, (node, _)) in NODES.into_iter().enumerate() {
            let batch = self.play_node(node, work, params);
            for job in (0..JOBS.len()).filter(|job| self.plan.steps[*job].node == node) {
                let (began, ended) = batch.times(job);
                let ended = ended.unwrap_or(f64::NAN);
                outcome.jobs_s[job] = ended - began - params.start_s;
                outcome.nodes_s[index] = outcome.nodes_s[index].max(ended);
                let place = format!("node {node}, cores {}", self.plan.steps[job].cores);
                let history = &mut outcome.history.jobs[job];
                history.see(began, Some(place));
                history.end(ended);
            }
        }
        outcome.total_s = outcome.nodes_s.into_iter().fold(0.0, f64::max);
        self.serve(params, chance, &mut outcome);
        outcome
    }

    fn policy(&self, node: &str) -> Policy {
        let policy = StaticPlan::new(&self.plan, node, &self.jobs());
        Policy::StaticPlan(policy.expect("a plan of ours is whole"))
    }

    fn play_node(&self, node: &str, work: &[f64; 6], params: &Params) -> Batch {
        let here = |job: usize| self.plan.steps[job].node == node;
        let scaling = Scaling::all();
        let mut policy = self.policy(node);
        let mut batch = Batch::new(&scaling, work, params);
        let mut plan = CorePlan::default();
        let mut look = 0.0;
        let mut step = 0_u32;
        loop {
            let now = f64::from(step) * STEP_S;
            if now >= look {
                let jobs = batch.states();
                let ended = |job: &usize| here(*job) && jobs[*job].has_ended();
                let ended = (0..JOBS.len()).filter(ended).count();
                if ended == (0..JOBS.len()).filter(|job| here(*job)).count() {
                    return batch;
                }
                let seen = Seen {
                    jobs,
                    ..Seen::default()
                };
                plan = policy.plan(&seen);
                batch.obey(now, &plan);
                look += TICK_S;
            }
            batch.advance(now, STEP_S, &plan);
            step += 1;
        }
    }

    /// Memcached on its own node until the jobs have ended.
    fn serve(&self, params: &Params, mut chance: Option<SmallRng>, outcome: &mut Outcome) {
        let memcached = Memcached::new(params);
        let plan = self.policy(SERVICE.0).plan(&Seen::default());
        let cores = plan.service.len();
        let (first, each_s, more) = SCAN;
        let count = (outcome.total_s / each_s).ceil() as u32;
        let interval = |n: u32| {
            let rate = first + f64::from(n) * more;
            let part = Part {
                rate,
                cores,
                requests: rate * each_s,
            };
            let by_chance = chance
                .as_mut()
                .map_or(1.0, |rng| lognormal(rng, params.p95_sigma));
            Interval {
                at_s: f64::from(n) * each_s,
                rate,
                p95_s: memcached.p95(&[part]) * by_chance,
            }
        };
        let intervals: Vec<Interval> = (0..count).map(interval).collect();
        let violates = |one: &&Interval| one.p95_s > OBJECTIVE.as_secs_f64();
        outcome.violations = intervals.iter().filter(violates).count() as f64 / f64::from(count);
        outcome.history.cores = vec![(0.0, cores)];
        outcome.history.intervals = intervals;
    }
}

/// Core seconds of each job with one thread, from its time in part 3. Blackscholes and fft ran side by side.
pub(super) fn work(params: &Params) -> [f64; 6] {
    let scaling = Scaling::all();
    std::array::from_fn(|job| {
        let row = DOCUMENT[job];
        let beside = matches!(JOBS[job], "blackscholes" | "fft");
        let others = if beside { params.antagonism } else { 0.0 };
        let speed = scaling[job].speed(f64::from(row.threads.min(row.cores)));
        PART3_S[job] * speed / scaling[job].slowdown(others)
    })
}
