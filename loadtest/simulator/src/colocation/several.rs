// SPDX-License-Identifier: Apache-2.0
//! Two memcacheds and jobs on the four cores of part 4's node: not in document 004, which has one.

use std::fmt::Write;

use rand::SeedableRng;
use rand::rngs::SmallRng;
use weir_governor::cores::parties::several::{self, Several};
use weir_governor::sensed::Nanos;

use super::chance::lognormal;
use super::load;
use super::memcached::{Memcached, Part, Window};
use super::params::Params;
use super::part4::{CORES, OBJECTIVE, STEP_S};

/// Services on the node.
const SERVICES: usize = 2;

/// How cores are divided.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// Each service has two, which are all that its threads use.
    Two,
    /// Each service has one, and jobs the others.
    One,
    /// `parties` for several services.
    Parties,
}

impl Way {
    const ALL: [Self; 3] = [Self::Two, Self::One, Self::Parties];

    fn name(self) -> &'static str {
        match self {
            Self::Two => "two cores each",
            Self::One => "one core each",
            Self::Parties => "parties, governor's pace",
        }
    }
}

/// What came of a run.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Outcome {
    /// Share of both services' intervals whose p95 was above the objective.
    pub(super) violations: f64,
    /// Cores that jobs had, on average.
    pub(super) jobs_cores: f64,
    /// Changes of who has a core, an hour.
    pub(super) changes: f64,
}

/// One of the two.
struct Service {
    rates: Vec<f64>,
    window: Window,
    /// Of this interval, on one core and on two.
    requests: [f64; 2],
}

/// One run of 1,800 s, with a load of its own for each service.
pub(super) fn run(way: Way, params: &Params, interval_s: f64, seed: u64) -> Outcome {
    let memcached = Memcached::new(params);
    let mut rng = SmallRng::seed_from_u64(seed ^ 0x5e);
    let mut services: Vec<Service> = (0..SERVICES as u64)
        .map(|service| Service {
            // Loads of neighbouring seeds begin alike.
            rates: load::rates(interval_s, seed + 1_000_003 * service),
            window: Window::default(),
            requests: [0.0; 2],
        })
        .collect();
    let policy = several::Params {
        // It has two threads.
        most: 2,
        ..several::Params::default()
    };
    let mut several = Several::new(policy, SERVICES, CORES as usize);
    let mut cores = match way {
        Way::One => vec![1; SERVICES],
        Way::Two | Way::Parties => several.cores().collect(),
    };
    let mut outcome = Outcome::default();
    let steps = (load::SECONDS / STEP_S) as u64;
    let per_interval = (interval_s / STEP_S).round() as u64;
    let per_look = (params.governor_tick_s / STEP_S).round().max(1.0) as u64;
    for step in 0..steps {
        let now = step as f64 * STEP_S;
        let interval = (step / per_interval) as usize;
        if way == Way::Parties && step % per_look == 0 {
            let slack = |service: &Service| {
                let p95 = service.window.p95(&memcached)?;
                Some(1.0 - p95.as_secs_f64() / OBJECTIVE.as_secs_f64())
            };
            let slacks: Vec<Option<f64>> = services.iter().map(slack).collect();
            several.see(Nanos((now * 1e9) as u64), &slacks);
            let next: Vec<usize> = several.cores().collect();
            let changed = cores.iter().zip(&next).filter(|(one, two)| one != two);
            outcome.changes += changed.count() as f64;
            cores = next;
        }
        for (service, cores) in services.iter_mut().zip(&cores) {
            let Some(&rate) = service.rates.get(interval) else {
                continue;
            };
            let requests = memcached.served(rate, *cores) * STEP_S;
            let part = Part {
                rate,
                cores: *cores,
                requests,
            };
            service.window.add(now, part, params.p95_window_s);
            service.requests[*cores - 1] += requests;
            if (step + 1) % per_interval == 0 {
                let parts = std::mem::take(&mut service.requests);
                let parts = [1, 2].map(|cores| Part {
                    rate,
                    cores,
                    requests: parts[cores - 1],
                });
                let p95 = memcached.p95(&parts) * lognormal(&mut rng, params.p95_sigma);
                outcome.violations += f64::from(u8::from(p95 > OBJECTIVE.as_secs_f64()));
            }
        }
        let taken: usize = cores.iter().sum();
        outcome.jobs_cores += (CORES as usize - taken) as f64;
    }
    let intervals: usize = services.iter().map(|service| service.rates.len()).sum();
    Outcome {
        violations: outcome.violations / intervals as f64,
        jobs_cores: outcome.jobs_cores / steps as f64,
        changes: outcome.changes * 3600.0 / load::SECONDS,
    }
}

/// The table, with these seeds from 1.
pub(super) fn markdown(text: &mut String, params: &Params, seeds: u64) {
    let _ = writeln!(
        text,
        "## Two services on the four cores (SIMULATED)\n\nTwo memcacheds with loads of their own, each with the objective \
         of document 004, which has one. Jobs are as many as there are cores for them.\n\n\
         |  | interval | violations | cores for jobs | changes of cores an hour |\n|---|---:|---:|---:|---:|"
    );
    for way in Way::ALL {
        for interval_s in [10.0, 3.0] {
            let outcomes = (1..=seeds).map(|seed| run(way, params, interval_s, seed));
            let outcomes: Vec<Outcome> = outcomes.collect();
            let mean =
                |of: fn(&Outcome) -> f64| outcomes.iter().map(of).sum::<f64>() / seeds as f64;
            let _ = writeln!(
                text,
                "| {} | {interval_s} s | {:.2} % | {:.2} | {:.0} |",
                way.name(),
                mean(|outcome| outcome.violations) * 100.0,
                mean(|outcome| outcome.jobs_cores),
                mean(|outcome| outcome.changes),
            );
        }
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parties_leaves_jobs_more_than_two_cores_each_and_violates_less_than_one_each() {
        let run = |way| run(way, &Params::default(), 10.0, 1);
        let [two, one, parties] = Way::ALL.map(run);
        assert_eq!((two.jobs_cores, one.jobs_cores), (0.0, 2.0));
        assert!(parties.jobs_cores > 0.5, "{parties:?}");
        assert!(
            parties.violations < 0.5 * one.violations,
            "{parties:?} {one:?}"
        );
    }
}
