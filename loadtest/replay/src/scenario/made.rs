// SPDX-License-Identifier: Apache-2.0
//! Requests that are made up: Poisson arrivals stage by stage, everything else drawn for each.

use std::time::Duration;

use super::plan::{Capacity, Plan, Timed};
use super::{Error, Fleet, MOST_REQUESTS, Scenario};
use crate::arrivals::{Arrivals, Rate};
use crate::popularity::Popularity;
use crate::rng::SplitMix64;
use crate::units::micros;
use crate::workload::{MAX_RUN_US, Request};

/// Requests that are made up.
#[derive(Debug, Clone, PartialEq)]
pub struct Made {
    /// One after another.
    pub stages: Vec<Stage>,
    /// Their shares make 1.
    pub priorities: Vec<(String, f64)>,
    /// All alike; 0: nobody is named.
    pub users: u32,
    /// Data that hosts may have cached.
    pub keys: Keys,
    /// Time on a core.
    pub run_ms: Distribution,
    /// Size of a key's data.
    pub bytes: Distribution,
}

/// A time with one rate, or with one that changes evenly.
#[derive(Debug, Clone, PartialEq)]
pub struct Stage {
    /// Its name.
    pub name: String,
    /// How long it lasts.
    pub duration: Duration,
    /// At the beginning.
    pub from: Pace,
    /// At the end.
    pub to: Pace,
    /// Its figures are told.
    pub measured: bool,
}

/// How many requests come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// As a part of what the fleet can do.
    OfCapacity(f64),
    /// In a second.
    PerSecond(f64),
}

/// Keys.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Keys {
    /// 0: requests have none.
    pub number: usize,
    /// Exponent of their popularity.
    pub zipf: f64,
}

/// How a figure differs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Distribution {
    /// It does not.
    Fixed(f64),
    /// All between two are alike.
    Uniform(f64, f64),
    /// With this mean.
    Exponential(f64),
}

impl Distribution {
    /// Its mean.
    #[must_use]
    pub fn mean(&self) -> f64 {
        match self {
            Self::Fixed(value) | Self::Exponential(value) => *value,
            Self::Uniform(from, to) => (from + to) / 2.0,
        }
    }

    /// A value, with `unit` uniform in 0..1.
    fn draw(&self, unit: f64) -> f64 {
        match self {
            Self::Fixed(value) => *value,
            Self::Uniform(from, to) => from + unit * (to - from),
            Self::Exponential(mean) => -(1.0 - unit).ln() * mean,
        }
    }
}

impl Pace {
    fn per_second(self, capacity: &Capacity) -> f64 {
        match self {
            Self::OfCapacity(share) => share * capacity.requests_per_s,
            Self::PerSecond(rate) => rate,
        }
    }
}

impl Fleet {
    /// A job holds a core for its run time, so cores do cores ÷ mean run time.
    fn capacity(self, mean_run_ms: f64) -> Capacity {
        match self {
            Self::Cores(cores) => Capacity {
                cores: Some(cores),
                requests_per_s: 1e3 * cores / mean_run_ms,
            },
            Self::Requests(requests_per_s) => Capacity {
                cores: None,
                requests_per_s,
            },
        }
    }
}

pub(super) fn make(
    scenario: &Scenario,
    made: &Made,
    fleet: Fleet,
    lasting: Option<Duration>,
    seed: u64,
) -> Result<(Vec<Request>, Plan), Error> {
    let mean_run_ms = made.run_ms.mean();
    let capacity = made.capacity(fleet)?;
    let stretch = made.stretch(lasting);
    made.refuse_too_many(&capacity, stretch)?;
    let mut drawn = Drawn::new(made, seed);
    let (mut requests, mut stages) = (Vec::new(), Vec::new());
    let mut begin = Duration::ZERO;
    for stage in &made.stages {
        let end = begin + stage.duration.mul_f64(stretch);
        let of_stage = drawn.stage(&stage.rate(&capacity), begin, end);
        let runs = of_stage.iter().map(|request| request.run_us);
        stages.push(Timed {
            name: stage.name.clone(),
            from_s: begin.as_secs_f64(),
            to_s: end.as_secs_f64(),
            measured: stage.measured,
            requests: of_stage.len(),
            run_s: runs.sum::<u64>() as f64 / 1e6,
        });
        requests.extend(of_stage);
        begin = end;
    }
    let priorities = made.priorities.iter();
    let plan = Plan {
        scenario: scenario.name.clone(),
        objective: scenario.objective.clone(),
        seed,
        capacity,
        deadline_ms: 1e3 * scenario.deadline.as_secs_f64(),
        priorities: priorities.map(|(name, _)| name.clone()).collect(),
        stages,
        requests: requests.len(),
        mean_run_ms,
        thresholds: scenario.thresholds.clone(),
    };
    Ok((requests, plan))
}

impl Made {
    /// The fleet's, where that can be told of these jobs.
    fn capacity(&self, fleet: Fleet) -> Result<Capacity, Error> {
        let mean_run_ms = self.run_ms.mean();
        let relative = |pace: &Pace| matches!(pace, Pace::OfCapacity(_));
        let relative = |stage: &Stage| relative(&stage.from) || relative(&stage.to);
        let any_relative = self.stages.iter().any(relative);
        if matches!(fleet, Fleet::Cores(_)) && mean_run_ms <= 0.0 && any_relative {
            return Err(Error::Fleet(
                "jobs without a run time: cores do not tell the capacity, requests a second do",
            ));
        }
        Ok(fleet.capacity(mean_run_ms))
    }

    /// Times longer than the stages are written.
    fn stretch(&self, lasting: Option<Duration>) -> f64 {
        let all: Duration = self.stages.iter().map(|stage| stage.duration).sum();
        lasting.map_or(1.0, |lasting| lasting.as_secs_f64() / all.as_secs_f64())
    }

    fn refuse_too_many(&self, capacity: &Capacity, stretch: f64) -> Result<(), Error> {
        let stages = self.stages.iter();
        let expected = stages.map(|stage| stage.rate(capacity).expected(stage.duration));
        let expected = stretch * expected.sum::<f64>();
        if expected > MOST_REQUESTS {
            return Err(Error::TooMany(expected));
        }
        Ok(())
    }
}

impl Stage {
    fn rate(&self, capacity: &Capacity) -> Rate {
        Rate {
            from: self.from.per_second(capacity),
            to: self.to.per_second(capacity),
        }
    }
}

/// The source that requests are drawn from.
struct Drawn<'a> {
    made: &'a Made,
    rng: SplitMix64,
    popularity: Popularity,
    /// Of each key's data.
    bytes: Vec<u64>,
}

impl<'a> Drawn<'a> {
    fn new(made: &'a Made, seed: u64) -> Self {
        let mut rng = SplitMix64::new(seed);
        let popularity = Popularity::new(made.keys.number.max(1), made.keys.zipf, &mut rng);
        let bytes = (0..made.keys.number).map(|_| made.bytes.draw(rng.unit()).round() as u64);
        let bytes = bytes.collect();
        Self {
            made,
            rng,
            popularity,
            bytes,
        }
    }

    /// The requests of a stage: Poisson arrivals between two moments.
    fn stage(&mut self, rate: &Rate, begin: Duration, end: Duration) -> Vec<Request> {
        let mut arrivals = Arrivals::new(rate, end - begin);
        let mut requests = Vec::new();
        while let Some(at) = arrivals.next(self.rng.unit()) {
            requests.push(self.request(micros(begin + at)));
        }
        requests
    }

    /// Four numbers are drawn for each, whatever the scenario uses of them.
    fn request(&mut self, t_us: u64) -> Request {
        let [key, user, class, run] = [(); 4].map(|()| self.rng.unit());
        let key = (self.made.keys.number > 0).then(|| self.popularity.draw(key));
        let users = self.made.users;
        let user = (users > 0).then(|| (user * f64::from(users)) as u32);
        let run_us = (1e3 * self.made.run_ms.draw(run)).round() as u64;
        Request {
            t_us,
            key: key.map_or_else(String::new, |key| format!("k{key}")),
            priority: self.priority(class).to_owned(),
            user: user.map_or_else(String::new, |user| format!("u{user}")),
            run_us: run_us.min(MAX_RUN_US),
            bytes: key.map_or(0, |key| self.bytes[key]),
            body: None,
            sender: None,
        }
    }

    fn priority(&self, unit: f64) -> &str {
        let mut sum = 0.0;
        let mut last = "";
        for (name, share) in &self.made.priorities {
            if *share > 0.0 {
                last = name;
            }
            sum += share;
            if unit < sum {
                return name;
            }
        }
        last
    }
}
