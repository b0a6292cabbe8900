// SPDX-License-Identifier: Apache-2.0
//! A better plan for part 3, and what no plan can beat.

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_governor::cores::static_plan::Step;

use super::jobs::Scaling;
use super::params::Params;
use super::part3::{self, NODES, Written};
use super::published::JOBS;

/// A job takes so many cores of a node, in the order of the candidate.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Choice {
    job: usize,
    node: usize,
    cores: u32,
}

/// Jobs in the order in which they are placed, each as early as its node has the cores.
type Candidate = [Choice; 6];

/// When each job of a candidate starts and ends, and on which cores of its node.
type Schedule = [(f64, f64, Vec<u32>); 6];

/// What is known of the jobs.
pub(super) struct Search {
    scaling: [Scaling; 6],
    work: [f64; 6],
    start_s: f64,
}

impl Search {
    pub(super) fn new(params: &Params) -> Self {
        Self {
            scaling: Scaling::all(),
            work: part3::work(params),
            start_s: params.start_s,
        }
    }

    fn seconds(&self, job: usize, cores: u32) -> f64 {
        self.start_s + self.work[job] / self.scaling[job].speed(f64::from(cores))
    }

    /// No plan ends sooner. In a given time each job takes at least the core seconds of the fewest cores with
    /// which it ends in that time, and there are no more than all cores have; that jobs disturb one another,
    /// and that nodes are two, is left out.
    pub(super) fn bound(&self) -> f64 {
        let largest = NODES.map(|(_, cores)| cores).into_iter().max().unwrap_or(1);
        let all: f64 = NODES.iter().map(|(_, cores)| f64::from(*cores)).sum();
        let least = |job: usize, total: f64| {
            let each = (1..=largest).map(|cores| (f64::from(cores), self.seconds(job, cores)));
            let in_time = each.filter(|(_, seconds)| *seconds <= total);
            in_time
                .map(|(cores, seconds)| cores * seconds)
                .fold(f64::INFINITY, f64::min)
        };
        let (mut low, mut high) = (0.0, 1e5);
        for _ in 0..60 {
            let middle = f64::midpoint(low, high);
            let needed: f64 = (0..6).map(|job| least(job, middle)).sum();
            if needed > all * middle {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Places the jobs one after the other on the cores that are free first.
    fn schedule(&self, candidate: &Candidate) -> (f64, Schedule) {
        let mut free = NODES.map(|(_, cores)| vec![0.0_f64; cores as usize]);
        let mut schedule: Schedule = std::array::from_fn(|_| (0.0, 0.0, Vec::new()));
        let mut total = 0.0_f64;
        for choice in candidate {
            let free = &mut free[choice.node];
            let mut cores: Vec<usize> = (0..free.len()).collect();
            cores.sort_by(|one, other| free[*one].total_cmp(&free[*other]));
            cores.truncate(choice.cores as usize);
            let start = cores.iter().map(|core| free[*core]).fold(0.0, f64::max);
            let end = start + self.seconds(choice.job, choice.cores);
            for core in &cores {
                free[*core] = end;
            }
            total = total.max(end);
            let numbers = cores.iter().map(|core| *core as u32).collect();
            schedule[choice.job] = (start, end, numbers);
        }
        (total, schedule)
    }

    /// The best of a climb from each of several beginnings.
    pub(super) fn best(&self, climbs: u64, moves: u32) -> (f64, Written) {
        let mut best: Option<(f64, Candidate)> = None;
        for seed in 0..climbs {
            let mut rng = SmallRng::seed_from_u64(seed);
            let mut at: Candidate = std::array::from_fn(|job| any(job, &mut rng));
            let mut total = self.schedule(&at).0;
            for _ in 0..moves {
                let mut next = at;
                if rng.random_range(0..3) == 0 {
                    next.swap(rng.random_range(0..6), rng.random_range(0..6));
                } else {
                    let place = rng.random_range(0..6);
                    next[place] = any(next[place].job, &mut rng);
                }
                let better = self.schedule(&next).0;
                if better <= total {
                    (at, total) = (next, better);
                }
            }
            if best.is_none_or(|(least, _)| total < least) {
                best = Some((total, at));
            }
        }
        let (total, candidate) = best.expect("at least one climb");
        (total, self.write(&candidate))
    }

    /// As a plan: a job comes after those that had one of its cores before.
    fn write(&self, candidate: &Candidate) -> Written {
        let (_, schedule) = self.schedule(candidate);
        let mut threads = [1; 6];
        let mut steps = Vec::new();
        let node_of = |job: usize| {
            candidate
                .iter()
                .find(|choice| choice.job == job)
                .map(|c| c.node)
        };
        for job in 0..6 {
            let (start, _, cores) = &schedule[job];
            let before = |other: &usize| {
                let (_, end, theirs) = &schedule[*other];
                let shared = theirs.iter().any(|core| cores.contains(core));
                *other != job && node_of(*other) == node_of(job) && shared && end <= start
            };
            threads[job] = cores.len() as u32;
            steps.push(Step {
                job: JOBS[job].to_owned(),
                node: NODES[node_of(job).unwrap_or(0)].0.to_owned(),
                cores: cores.iter().copied().collect(),
                after: (0..6)
                    .filter(before)
                    .map(|job| JOBS[job].to_owned())
                    .collect(),
            });
        }
        Written::new(steps, threads)
    }
}

fn any(job: usize, rng: &mut SmallRng) -> Choice {
    let node = rng.random_range(0..NODES.len());
    let cores = rng.random_range(1..=NODES[node].1);
    Choice { job, node, cores }
}
