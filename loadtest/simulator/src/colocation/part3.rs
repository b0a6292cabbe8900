// SPDX-License-Identifier: Apache-2.0
//! Part 3: the six jobs on a node of four cores and one of eight; memcached has a third node to itself.

use weir_governor::cores::static_plan::{Params as Plan, PlanNode, StaticPlan, Step};
use weir_governor::cores::{CorePlan, Cores, Policy, Seen};
use weir_governor::jobs::{Job, Queue};

use super::batch::Batch;
use super::jobs::Scaling;
use super::params::Params;
use super::published::{JOBS, PART3_S};

/// Cores of the nodes that jobs can have.
pub(super) const NODES: [(&str, u32); 2] = [("four", 4), ("eight", 8)];
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
        let nodes = NODES.map(node).to_vec();
        let plan = Plan { nodes, steps };
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

    /// Plays it, a governor on each node.
    #[must_use]
    pub fn play(&self, params: &Params) -> Outcome {
        let jobs = self.jobs();
        let mut outcome = Outcome {
            jobs_s: [0.0; 6],
            total_s: 0.0,
        };
        for (node, _) in NODES {
            let policy = StaticPlan::new(&self.plan, node, &jobs).expect("a plan of ours is whole");
            self.play_node(node, Policy::StaticPlan(policy), params, &mut outcome);
        }
        outcome
    }

    fn play_node(&self, node: &str, mut policy: Policy, params: &Params, outcome: &mut Outcome) {
        let here = |job: usize| self.plan.steps[job].node == node;
        let scaling = Scaling::all();
        let work = work(params);
        let mut batch = Batch::new(&scaling, &work, params);
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
                    break;
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
        for job in (0..JOBS.len()).filter(|job| here(*job)) {
            let (began, ended) = batch.times(job);
            let ended = ended.unwrap_or(f64::NAN);
            outcome.jobs_s[job] = ended - began - params.start_s;
            outcome.total_s = outcome.total_s.max(ended);
        }
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
