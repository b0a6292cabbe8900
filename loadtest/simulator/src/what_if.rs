// SPDX-License-Identifier: Apache-2.0
//! One workload on two fleets, request by request: what differs, and how sure that is.
//!
//! The n-th request is the same in both, so parts of the workload are compared in pairs, and what is common to a part, such
//! as a rush, is no uncertainty of the difference. The interval is the bootstrap's (Efron, *Bootstrap methods: another look
//! at the jackknife*, Annals of Statistics 7(1), 1979), over parts rather than requests, as requests that wait for one
//! another are not independent (Künsch, *The jackknife and the bootstrap for general stationary observations*, Annals of
//! Statistics 17(3), 1989).

use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};
use weir_executor::Source;
use weir_replay::record::Outcome;

use crate::Ended;
use crate::tally::Times;
use crate::workload::HIGH;

/// The requests in equal parts, by their order.
const PARTS: usize = 40;
const RESAMPLES: usize = 2_000;
/// Of resamples that are left out at either end.
const OUTSIDE: f64 = 0.025;

/// What came of one run, by priority, high first.
#[derive(Debug, Clone)]
pub struct Run {
    requests: usize,
    sums: [[Sum; 2]; PARTS],
    times: [Times; 2],
    failed: [u64; 2],
    hits: u64,
    answers: u64,
}

/// Of all-in durations.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    seconds: f64,
    requests: u64,
}

impl Sum {
    fn add(&mut self, other: Self) {
        self.seconds += other.seconds;
        self.requests += other.requests;
    }

    fn mean(self) -> Option<f64> {
        (self.requests > 0).then(|| self.seconds / self.requests as f64)
    }
}

impl Run {
    /// Of nothing yet, of a workload with so many requests.
    #[must_use]
    pub fn new(requests: usize) -> Self {
        Self {
            requests: requests.max(1),
            sums: [[Sum::default(); 2]; PARTS],
            times: [Times::new(), Times::new()],
            failed: [0; 2],
            hits: 0,
            answers: 0,
        }
    }

    /// Adds a request.
    pub fn add(&mut self, ended: &Ended) {
        let class = usize::from(ended.class != HIGH);
        let part = (ended.index * PARTS / self.requests).min(PARTS - 1);
        self.sums[part][class].add(Sum {
            seconds: ended.duration.as_secs_f64(),
            requests: 1,
        });
        self.times[class].add(ended.duration);
        if ended.outcome != Outcome::Ok {
            self.failed[class] += 1;
            return;
        }
        self.answers += 1;
        let source = ended.spent.as_ref().map(|spent| spent.source);
        self.hits += u64::from(source == Some(Source::Hit));
    }

    /// Seconds that 99 of 100 requests of this priority took at most.
    #[must_use]
    pub fn p99_s(&self, class: usize) -> f64 {
        let [.., p99, _] = self.times[class].row();
        p99
    }

    /// Of this priority, over all.
    #[must_use]
    pub fn failed(&self, class: usize) -> f64 {
        let requests: u64 = self.sums.iter().map(|part| part[class].requests).sum();
        self.failed[class] as f64 / requests.max(1) as f64
    }

    /// Answers without a fetch, over all answers.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        self.hits as f64 / self.answers.max(1) as f64
    }
}

/// Seconds that a request of this priority took on average; none where there is none.
#[must_use]
pub fn mean_s(runs: &[Run], class: usize) -> Option<f64> {
    drawn(&parts(runs, class), 0..PARTS)
}

/// How many times as long they took as before, and from where to where that is in 95 of 100 resamples.
#[derive(Debug, Clone, Copy, PartialEq)]
#[allow(missing_docs)]
pub struct Ratio {
    pub of_means: f64,
    pub least: f64,
    pub most: f64,
}

impl Ratio {
    /// Between the runs of two fleets, of this priority; none where there is no such request.
    #[must_use]
    pub fn of(now: &[Run], then: &[Run], class: usize) -> Option<Self> {
        let (now, then) = (parts(now, class), parts(then, class));
        let ratio = |places: &[usize]| {
            let mean = |parts| drawn(parts, places.iter().copied());
            Some(mean(&then)? / mean(&now)?.max(f64::MIN_POSITIVE))
        };
        let all: Vec<_> = (0..PARTS).collect();
        let of_means = ratio(&all)?;
        let mut rng = SmallRng::seed_from_u64(1);
        let mut draw = || -> Vec<_> { all.iter().map(|_| rng.random_range(0..PARTS)).collect() };
        let mut ratios: Vec<_> = (0..RESAMPLES).filter_map(|_| ratio(&draw())).collect();
        ratios.sort_by(f64::total_cmp);
        let at = |share: f64| ratios[(share * (ratios.len() - 1) as f64).round() as usize];
        Some(match ratios.is_empty() {
            true => Self {
                of_means,
                least: f64::NAN,
                most: f64::NAN,
            },
            false => Self {
                of_means,
                least: at(OUTSIDE),
                most: at(1.0 - OUTSIDE),
            },
        })
    }

    /// Whether one fleet is better in all resamples that count.
    #[must_use]
    pub fn is_sure(&self) -> bool {
        self.most < 1.0 || self.least > 1.0
    }
}

/// Of all runs together.
fn parts(runs: &[Run], class: usize) -> [Sum; PARTS] {
    let mut parts = [Sum::default(); PARTS];
    for run in runs {
        for (part, sums) in parts.iter_mut().zip(&run.sums) {
            part.add(sums[class]);
        }
    }
    parts
}

fn drawn(parts: &[Sum; PARTS], places: impl Iterator<Item = usize>) -> Option<f64> {
    let mut sum = Sum::default();
    for place in places {
        sum.add(parts[place]);
    }
    sum.mean()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// The n-th request takes so many milliseconds.
    fn run(requests: usize, ms: impl Fn(usize) -> u64) -> Run {
        let mut run = Run::new(requests);
        for index in 0..requests {
            let mut ended = Ended::new(index as u32, Duration::ZERO, HIGH, 0);
            ended.duration = Duration::from_millis(ms(index));
            ended.outcome = Outcome::Ok;
            run.add(&ended);
        }
        run
    }

    #[test]
    fn what_is_common_to_both_is_no_uncertainty() {
        let rush = |n: usize| 10 + (n as u64 / 100) * 50;
        let (now, then) = (run(1000, rush), run(1000, |n| 2 * rush(n)));
        let now = [now];
        let ratio = Ratio::of(&now, &[then], 0).unwrap();
        assert!((ratio.of_means - 2.0).abs() < 1e-9);
        assert!(ratio.is_sure() && ratio.most - ratio.least < 1e-9);
        let same = Ratio::of(&now, &now, 0).unwrap();
        assert!(!same.is_sure());
    }

    #[test]
    fn what_differs_in_few_parts_is_unsure() {
        let now = run(1000, |_| 10);
        let then = run(1000, |n| if n < 50 { 30 } else { 10 });
        let ratio = Ratio::of(&[now], &[then], 0).unwrap();
        assert!((ratio.of_means - 1.1).abs() < 1e-9);
        assert!(ratio.least <= 1.0 && ratio.most > 1.15, "{ratio:?}");
    }

    #[test]
    fn a_priority_that_nobody_has_is_not_compared() {
        let runs = [run(10, |_| 1)];
        assert_eq!(mean_s(&runs, 1), None);
        assert_eq!(Ratio::of(&runs, &runs, 1), None);
    }
}
