// SPDX-License-Identifier: Apache-2.0
//! Part 4: memcached and the six jobs on one node of four cores, under a load that steps.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_governor::cores::{
    CorePlan, Cores, Policy, Seen, blocks, heracles, hipster_co, latency_slack, parties,
};
use weir_governor::jobs::{Job, Queue, State};
use weir_governor::sensed::Nanos;

use super::batch::Batch;
use super::chance::lognormal;
use super::history::{History, Interval};
use super::jobs::Scaling;
use super::load;
use super::memcached::{Memcached, Part, Window};
use super::params::Params;
use super::published::JOBS;
use super::waste::Waste;

/// The objective (part 4.2): a p95 above it is a violation.
pub const OBJECTIVE: Duration = Duration::from_micros(1500);
/// Of the node.
pub(super) const CORES: u32 = 4;
/// Modelled time goes by this, in seconds.
pub(super) const STEP_S: f64 = 0.01;

/// Who decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// `blocks` at the pace of document 004's scheduler.
    Document,
    /// `blocks` at the governor's pace.
    Blocks,
    /// `latency_slack` at the pace of document 004's scheduler.
    SlowSlack,
    /// `latency_slack` at the governor's pace.
    Slack,
    /// `parties`, at its own.
    Parties,
    /// `heracles`, at its own.
    Heracles,
    /// `hipster_co`, at its own.
    HipsterCo,
}

impl Way {
    /// In the order of the tables.
    pub const ALL: [Self; 7] = [
        Self::Document,
        Self::Blocks,
        Self::SlowSlack,
        Self::Slack,
        Self::Parties,
        Self::Heracles,
        Self::HipsterCo,
    ];

    /// For tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Document => "blocks, document's pace",
            Self::Blocks => "blocks, governor's pace",
            Self::SlowSlack => "latency_slack, document's pace",
            Self::Slack => "latency_slack, governor's pace",
            Self::Parties => "parties, governor's pace",
            Self::Heracles => "heracles, governor's pace",
            Self::HipsterCo => "hipster_co, governor's pace",
        }
    }

    /// `blocks` at the same pace.
    pub(super) fn beside(self) -> Option<Self> {
        match self {
            Self::Document | Self::Blocks => None,
            Self::SlowSlack => Some(Self::Document),
            Self::Slack | Self::Parties | Self::Heracles | Self::HipsterCo => Some(Self::Blocks),
        }
    }

    fn policy(self) -> Policy {
        let machine: Cores = (0..CORES).collect();
        let jobs = jobs();
        match self {
            Self::Document | Self::Blocks => {
                let params = blocks::Params::default();
                let policy = blocks::Blocks::new(params, &machine, &jobs);
                Policy::Blocks(policy.expect("the defaults are document 004's"))
            }
            Self::SlowSlack | Self::Slack => slack(latency_slack::Params {
                // The model's latency is that of the moment.
                window: Duration::ZERO,
                ..latency_slack::Params::default()
            }),
            Self::Parties => {
                let params = parties::Params::default();
                let policy = parties::Parties::new(params, &machine, &jobs);
                Policy::Parties(policy.expect("the defaults are for four cores"))
            }
            Self::Heracles => {
                let params = heracles::Params::default();
                let policy = heracles::Heracles::new(params, &machine, &jobs);
                Policy::Heracles(policy.expect("the defaults are for four cores"))
            }
            Self::HipsterCo => {
                let params = hipster_co::Params::default();
                let policy = hipster_co::HipsterCo::new(params, &machine, &jobs);
                Policy::HipsterCo(policy.expect("the defaults are for four cores"))
            }
        }
    }

    /// Seconds from one look to the next, and until it has had its effect.
    fn pace(self, params: &Params) -> (f64, f64) {
        match self {
            Self::Document | Self::SlowSlack => (params.document_tick_s, params.document_act_s),
            _ => (params.governor_tick_s, params.governor_act_s),
        }
    }
}

fn slack(params: latency_slack::Params) -> Policy {
    let machine: Cores = (0..CORES).collect();
    let policy = latency_slack::LatencySlack::new(params, &machine, &jobs());
    Policy::LatencySlack(policy.expect("the defaults are for four cores"))
}

/// Threads as in table 1, queues as in figure 8 and the text under it, in the order of [`JOBS`]. Order within a
/// queue: fft before dedup, freqmine before ferret, canneal before blackscholes.
const QUEUES: [(Queue, u32, u32); 6] = [
    (Queue::Short, 1, 1),
    (Queue::Medium, 1, 2),
    (Queue::Long, 1, 4),
    (Queue::Long, 0, 4),
    (Queue::Medium, 0, 1),
    (Queue::Short, 0, 1),
];

/// The jobs in the order of their queues.
fn jobs() -> Vec<Job> {
    let of = |index: usize| Job {
        name: JOBS[index].to_owned(),
        queue: QUEUES[index].0,
        threads: QUEUES[index].2,
    };
    order().map(of).to_vec()
}

/// Indices of [`JOBS`], those first that are first in their queue.
fn order() -> [usize; 6] {
    let mut order = [0, 1, 2, 3, 4, 5];
    order.sort_by_key(|index| QUEUES[*index].1);
    order
}

/// What came of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outcome {
    /// Seconds from each job's start to its end, in the order of [`JOBS`].
    pub jobs_s: [f64; 6],
    /// Seconds until all had ended.
    pub total_s: f64,
    /// Share of the intervals whose p95 was above [`OBJECTIVE`].
    pub violations: f64,
    /// Changes of the service's cores, an hour.
    pub changes: f64,
    /// Share of the time until all had ended in which a job had core 1.
    pub lent: f64,
    /// Previous rate, rate and p95 in microseconds of the intervals that violate.
    pub worst: Vec<(f64, f64, f64)>,
    /// Cores that did nothing.
    pub waste: Waste,
    /// For figures.
    pub history: History,
}

/// Core seconds of each job, in the order of [`JOBS`].
pub(super) fn work(params: &Params) -> [f64; 6] {
    JOBS.map(|job| params.get(&format!("{job}_s")).unwrap_or(0.0))
}

/// What the load is, and all else that is by chance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seeds {
    /// mcperf's.
    pub load: u64,
    /// Of readings, latencies and the scheduler's start.
    pub noise: u64,
}

impl Seeds {
    /// A run under document 004's own load.
    #[must_use]
    pub fn document(noise: u64) -> Self {
        Self {
            load: load::SEED,
            noise,
        }
    }

    /// A run under a load of its own.
    #[must_use]
    pub fn both(seed: u64) -> Self {
        Self {
            load: seed,
            noise: seed,
        }
    }
}

/// One run of 1,800 s.
#[must_use]
pub fn run(way: Way, params: &Params, interval_s: f64, seeds: Seeds) -> Outcome {
    Run::new(way, params, interval_s, seeds).play()
}

/// A run as it goes.
struct Run<'a> {
    params: &'a Params,
    rates: Vec<f64>,
    interval_s: f64,
    memcached: Memcached,
    batch: Batch,
    policy: Policy,
    tick_s: f64,
    act_s: f64,
    rng: SmallRng,
    /// Of the p95.
    window: Window,
    plan: CorePlan,
    /// What has been decided and has no effect yet.
    next: Option<(f64, CorePlan)>,
    /// CPU seconds since the last look.
    used: f64,
    /// By jobs.
    jobs_used: f64,
    changes: f64,
    lent: f64,
    waste: Waste,
    history: History,
}

impl<'a> Run<'a> {
    fn new(way: Way, params: &'a Params, interval_s: f64, seeds: Seeds) -> Self {
        let all = Scaling::all();
        let work = work(params);
        let scaling = order().map(|job| all[job].clone());
        let work = order().map(|job| work[job]);
        let (tick_s, act_s) = way.pace(params);
        Self {
            rates: load::rates(interval_s, seeds.load),
            interval_s,
            memcached: Memcached::new(params),
            batch: Batch::new(&scaling, &work, params),
            policy: way.policy(),
            tick_s,
            act_s,
            rng: SmallRng::seed_from_u64(seeds.noise ^ 0x004),
            window: Window::default(),
            plan: CorePlan {
                service: [0, 1].into(),
                ..CorePlan::default()
            },
            next: None,
            used: 0.0,
            jobs_used: 0.0,
            changes: 0.0,
            lent: 0.0,
            waste: Waste::default(),
            history: History {
                cores: vec![(0.0, 2)],
                ..History::default()
            },
            params,
        }
    }

    fn play(mut self) -> Outcome {
        let mut outcome = Outcome::default();
        let steps = (load::SECONDS / STEP_S) as u64;
        let per_interval = (self.interval_s / STEP_S).round() as u64;
        // The scheduler's start is at no fixed place in the load's interval.
        let mut look = self.rng.random_range(0.0..self.tick_s);
        let mut parts = [0.0; 2];
        let mut needs_two = false;
        let mut ended = None;
        for step in 0..steps {
            let now = step as f64 * STEP_S;
            let interval = (step / per_interval) as usize;
            let Some(&rate) = self.rates.get(interval) else {
                break;
            };
            if let Some((_, plan)) = self.next.take_if(|(at, _)| *at <= now) {
                self.changes += f64::from(u8::from(plan.service != self.plan.service));
                self.plan = plan;
                self.batch.obey(now, &self.plan);
                self.note(now);
            }
            if now >= look {
                self.look(now);
                look += self.tick_s;
            }
            if step % per_interval == 0 {
                needs_two = self.needs_two(rate);
            }
            // It has two threads.
            let cores = self.plan.service.len().min(2);
            self.serve(now, rate, cores);
            parts[cores.clamp(1, 2) - 1] += self.memcached.served(rate, cores) * STEP_S;
            self.jobs_used += self.batch.advance(now, STEP_S, &self.plan);
            if ended.is_none() {
                self.lent += if cores == 1 { STEP_S } else { 0.0 };
                let states = self.batch.states();
                self.waste
                    .add(STEP_S, &self.plan, &states, CORES, needs_two);
                ended = self.batch.all_ended().then_some(now + STEP_S);
            }
            if (step + 1) % per_interval == 0 {
                self.end_interval(interval, std::mem::take(&mut parts), &mut outcome);
            }
        }
        self.finish(ended, outcome)
    }

    fn end_interval(&mut self, interval: usize, requests: [f64; 2], outcome: &mut Outcome) {
        let rate = self.rates[interval];
        let p95_s = self.interval_p95(rate, requests);
        self.history.intervals.push(Interval {
            at_s: interval as f64 * self.interval_s,
            rate,
            p95_s,
        });
        if p95_s > OBJECTIVE.as_secs_f64() {
            outcome.violations += 1.0;
            let before = interval.checked_sub(1).map_or(0.0, |n| self.rates[n]);
            outcome.worst.push((before, rate, p95_s * 1e6));
        }
    }

    fn finish(mut self, ended: Option<f64>, mut outcome: Outcome) -> Outcome {
        outcome.violations /= self.rates.len() as f64;
        outcome.total_s = ended.unwrap_or(f64::NAN);
        outcome.lent = self.lent / outcome.total_s;
        outcome.changes = self.changes * 3600.0 / load::SECONDS;
        for (place, job) in order().into_iter().enumerate() {
            let (began, ended) = self.batch.times(place);
            outcome.jobs_s[job] = ended.map_or(f64::NAN, |ended| ended - began);
            if let Some(ended) = ended {
                self.history.jobs[job].end(ended);
            }
        }
        outcome.waste = self.waste;
        outcome.history = self.history;
        outcome
    }

    /// For figures: who has which cores from now on.
    fn note(&mut self, now: f64) {
        let cores = self.plan.service.len();
        if self.history.cores.last().is_none_or(|last| last.1 != cores) {
            self.history.cores.push((now, cores));
        }
        for (place, job) in order().into_iter().enumerate() {
            let history = &mut self.history.jobs[job];
            match self.batch.states()[place] {
                State::Running => history.see(now, Some(place_name(&self.plan.jobs[place].cores))),
                State::Paused => history.see(now, None),
                _ => {}
            }
        }
    }

    /// Whether one core would break the objective at this rate.
    fn needs_two(&self, rate: f64) -> bool {
        let one = Part {
            rate,
            cores: 1,
            requests: 1.0,
        };
        self.memcached.p95(&[one]) > OBJECTIVE.as_secs_f64()
    }

    fn look(&mut self, now: f64) {
        let noise = lognormal(&mut self.rng, self.params.use_sigma);
        let cpu = self.used / self.tick_s * noise;
        self.used = 0.0;
        let jobs_cpu = std::mem::take(&mut self.jobs_used) / self.tick_s;
        let p95 = self.window_p95();
        let plan = self.policy.plan(&Seen {
            now: Nanos((now * 1e9) as u64),
            cpu: Some(cpu),
            p95,
            p95_at: Nanos((now * 1e9) as u64),
            requests: self.window.requests(),
            jobs: self.batch.states(),
            jobs_cpu: Some(jobs_cpu),
            ..Seen::default()
        });
        self.next = Some((now + self.act_s, plan));
    }

    /// Of the requests of late; `blocks` does not look at them.
    fn window_p95(&self) -> Option<Duration> {
        if matches!(self.policy, Policy::Blocks(_)) {
            return None;
        }
        self.window.p95(&self.memcached)
    }

    fn serve(&mut self, now: f64, rate: f64, cores: usize) {
        self.used += self.memcached.cpu(rate, cores) * STEP_S;
        let requests = self.memcached.served(rate, cores) * STEP_S;
        let part = Part {
            rate,
            cores,
            requests,
        };
        self.window.add(now, part, self.params.p95_window_s);
    }

    fn interval_p95(&mut self, rate: f64, requests: [f64; 2]) -> f64 {
        let of = |(n, requests)| Part {
            rate,
            cores: n + 1,
            requests,
        };
        let parts: Vec<Part> = requests.into_iter().enumerate().map(of).collect();
        self.memcached.p95(&parts) * lognormal(&mut self.rng, self.params.p95_sigma)
    }
}

fn place_name(cores: &Cores) -> String {
    match cores.len() {
        1 => format!("core {cores}"),
        _ => format!("cores {cores}"),
    }
}
