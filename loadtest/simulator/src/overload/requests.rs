// SPDX-License-Identifier: Apache-2.0
//! Poisson arrivals of jobs of 50 to 500 ms on keys that are not equally wanted.

use std::time::Duration;

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use super::{Case, Phase};
use crate::workload::{HIGH, Job, Key, LOW, Work};

/// Keys, and how fast they get rarer (Zipf). The most wanted one has 6 % of all requests: less than one
/// host can do below saturation, and more in overload.
const KEYS: usize = 1000;
const SKEW: f64 = 0.8;
/// A key's data: 20 MB, fetched in 0.1 s.
const BYTES: u64 = 20_000_000;
/// Runs are lognormal; two standard deviations are the range, and what is beyond is cut off.
const SHORTEST_S: f64 = 0.05;
const LONGEST_S: f64 = 0.5;

/// The requests of a case. The same seed gives the same.
#[derive(Debug)]
pub struct Requests {
    rng: SmallRng,
    phases: std::vec::IntoIter<Phase>,
    /// When the phase ends, and the time between two requests.
    phase: (Duration, Duration),
    at: Duration,
    cores: f64,
    run_s: f64,
    high_share: f64,
    /// Sums of the keys' shares.
    shares: Vec<f64>,
}

impl Requests {
    /// Requests for a fleet of so many cores.
    #[must_use]
    pub fn new(case: &Case, cores: usize, seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0x6f76_6572_6c6f_6164);
        let weights = (1..=KEYS).map(|rank| (rank as f64).powf(-SKEW));
        let total: f64 = weights.clone().sum();
        let shares = weights.scan(0.0, |sum, weight| {
            *sum += weight / total;
            Some(*sum)
        });
        let drawn = 100_000;
        let run_s = (0..drawn).map(|_| run_s(&mut rng)).sum::<f64>() / f64::from(drawn);
        let mut requests = Self {
            rng,
            phases: case.phases.clone().into_iter(),
            phase: Default::default(),
            at: Duration::ZERO,
            cores: cores as f64,
            run_s,
            high_share: case.high_share,
            shares: shares.collect(),
        };
        requests.next_phase();
        requests
    }

    /// What they are about.
    #[must_use]
    pub fn keys() -> Vec<Key> {
        let name = |key| format!("project-{key}");
        (0..KEYS).map(|key| Key::new(&name(key))).collect()
    }

    fn next_phase(&mut self) -> Option<()> {
        let Phase { lasts, load } = self.phases.next()?;
        let between = self.run_s / (load * self.cores);
        self.phase = (self.phase.0 + lasts, Duration::from_secs_f64(between));
        Some(())
    }
}

/// Of a job, on one core.
fn run_s(rng: &mut SmallRng) -> f64 {
    let (low, high) = (SHORTEST_S.ln(), LONGEST_S.ln());
    // Box and Muller.
    let radius = (-2.0 * (1.0 - rng.random::<f64>()).ln()).sqrt();
    let normal = radius * (std::f64::consts::TAU * rng.random::<f64>()).cos();
    let log = (low + high) / 2.0 + normal * (high - low) / 4.0;
    log.exp().clamp(SHORTEST_S, LONGEST_S)
}

impl Iterator for Requests {
    type Item = Job;

    fn next(&mut self) -> Option<Job> {
        let pause = -(1.0 - self.rng.random::<f64>()).ln();
        let mut at = self.at + self.phase.1.mul_f64(pause);
        while at >= self.phase.0 {
            // What is left of the pause, at the next phase's rate: arrivals have no memory.
            let (end, before) = self.phase;
            let left = (at - end).as_secs_f64() / before.as_secs_f64();
            self.next_phase()?;
            at = end + self.phase.1.mul_f64(left);
        }
        self.at = at;
        let drawn: f64 = self.rng.random();
        let key = self
            .shares
            .partition_point(|sum| *sum <= drawn)
            .min(KEYS - 1);
        let high = self.rng.random_bool(self.high_share);
        Some(Job {
            at,
            key: Some(key as u32),
            version: 0,
            class: if high { HIGH } else { LOW },
            user: None,
            sender: None,
            bytes: BYTES,
            work: Work::Whole(Duration::from_secs_f64(run_s(&mut self.rng))),
            then: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_work_that_comes_is_what_the_phases_say() {
        let case = Case::surge(2.0, Duration::from_secs(300));
        let jobs: Vec<_> = Requests::new(&case, 56, 1).collect();
        assert!(jobs.is_sorted_by_key(|job| job.at));
        let overload = case.overload().unwrap();
        let (mut inside, mut outside) = (0.0, 0.0);
        for job in &jobs {
            let work = job.work.core_time().as_secs_f64() / 56.0;
            match overload.contains(&job.at) {
                true => inside += work / 300.0,
                false => outside += work / 120.0,
            }
        }
        assert!((1.95..2.05).contains(&inside), "{inside}");
        assert!((0.77..0.83).contains(&outside), "{outside}");
    }
}
