// SPDX-License-Identifier: Apache-2.0
//! memcached with two threads on one core or two: its CPU use and its latencies by load.

use std::collections::VecDeque;
use std::time::Duration;

use super::Params;

/// `memcached_scan.csv`: memcached with two threads under 5,000 to 125,000 requests a second. See its README.
const SCAN: &str = include_str!("../../../traces/memcached_scan.csv");

/// Standard normal quantiles of the three columns: 50, 95 and 99 %.
const Z: [f64; 3] = [0.0, 1.644_853_627, 2.326_347_874];

/// Latencies at one rate, as the logarithms of three quantiles in microseconds.
type Quantiles = [f64; 3];

/// Rates in ascending order with their latencies, for one core and for two.
#[derive(Debug, Clone)]
pub(super) struct Memcached {
    scans: [Vec<(f64, Quantiles)>; 2],
    capacity: f64,
    use_power: f64,
}

/// A part of the requests of an interval: all of one rate on the same cores.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Part {
    pub(super) rate: f64,
    pub(super) cores: usize,
    pub(super) requests: f64,
}

/// Requests of late: when, and what.
#[derive(Debug, Default)]
pub(super) struct Window(VecDeque<(f64, Part)>);

impl Window {
    /// Those of so many seconds are kept.
    pub(super) fn add(&mut self, now: f64, part: Part, keep_s: f64) {
        match self.0.back_mut() {
            // Alike ones are one part, but the window has to move on.
            Some((at, last))
                if last.rate == part.rate && last.cores == part.cores && now - *at < 0.05 =>
            {
                last.requests += part.requests;
            }
            _ => self.0.push_back((now, part)),
        }
        while self.0.front().is_some_and(|(at, _)| now - at > keep_s) {
            self.0.pop_front();
        }
    }

    /// How many there are.
    pub(super) fn requests(&self) -> u64 {
        let requests: f64 = self.0.iter().map(|(_, part)| part.requests).sum();
        requests.round() as u64
    }

    /// None where there was none.
    pub(super) fn p95(&self, memcached: &Memcached) -> Option<Duration> {
        let mut parts: Vec<Part> = Vec::new();
        for (_, part) in &self.0 {
            let alike = |one: &&mut Part| one.rate == part.rate && one.cores == part.cores;
            match parts.iter_mut().find(alike) {
                Some(one) => one.requests += part.requests,
                None => parts.push(*part),
            }
        }
        (!parts.is_empty()).then(|| Duration::from_secs_f64(memcached.p95(&parts)))
    }
}

impl Memcached {
    pub(super) fn new(params: &Params) -> Self {
        let mut scans = [scan("1"), scan("2")];
        for (_, tail) in scans[0]
            .iter_mut()
            .filter(|(rate, _)| *rate > params.capacity)
        {
            for quantile in &mut tail[1..] {
                *quantile += params.saturated_slow.ln();
            }
        }
        Self {
            scans,
            capacity: params.capacity,
            use_power: params.use_power,
        }
    }

    /// In cores.
    pub(super) fn cpu(&self, rate: f64, cores: usize) -> f64 {
        let cores = cores as f64;
        cores
            * (rate / (self.capacity * cores))
                .powf(self.use_power)
                .min(1.0)
    }

    /// Requests a second that are answered.
    pub(super) fn served(&self, rate: f64, cores: usize) -> f64 {
        rate.min(self.capacity * cores as f64)
    }

    fn quantiles(&self, rate: f64, cores: usize) -> Quantiles {
        let scan = &self.scans[cores.clamp(1, 2) - 1];
        let after = scan.partition_point(|(at, _)| *at < rate);
        let (Some(low), Some(high)) = (scan.get(after.saturating_sub(1)), scan.get(after)) else {
            return scan[scan.len() - 1].1;
        };
        if after == 0 {
            return high.1;
        }
        let share = (rate - low.0) / (high.0 - low.0);
        std::array::from_fn(|n| low.1[n] + share * (high.1[n] - low.1[n]))
    }

    /// Seconds that 95 % of these requests took at most.
    pub(super) fn p95(&self, parts: &[Part]) -> f64 {
        let of = |part: &Part| (part.requests, self.quantiles(part.rate, part.cores));
        let parts: Vec<(f64, Quantiles)> = parts.iter().map(of).collect();
        let all: f64 = parts.iter().map(|(requests, _)| requests).sum();
        let (mut low, mut high) = (0.0, 20.0);
        for _ in 0..30 {
            let middle = f64::midpoint(low, high);
            let below: f64 = parts.iter().map(|(n, q)| n * below(q, middle)).sum();
            if below < 0.95 * all {
                low = middle;
            } else {
                high = middle;
            }
        }
        high.exp() / 1e6
    }
}

/// Mean over the runs of each target rate; the rate is the target.
fn scan(cores: &str) -> Vec<(f64, Quantiles)> {
    let mut scan: Vec<(f64, f64, Quantiles)> = Vec::new();
    for line in SCAN.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        if cells[0] != cores {
            continue;
        }
        let number = |column: usize| cells[column].parse::<f64>().expect("a number");
        let rate = number(1);
        let found = scan.iter().position(|(at, ..)| *at == rate);
        let found = found.unwrap_or_else(|| {
            scan.push((rate, 0.0, [0.0; 3]));
            scan.len() - 1
        });
        scan[found].1 += 1.0;
        for (sum, column) in scan[found].2.iter_mut().zip(3..) {
            *sum += number(column).ln();
        }
    }
    scan.sort_by(|one, other| one.0.total_cmp(&other.0));
    let mean = |(rate, runs, sums): (f64, f64, Quantiles)| (rate, sums.map(|sum| sum / runs));
    scan.into_iter().map(mean).collect()
}

/// Share of the requests whose logarithm is below: a normal distribution in pieces, straight between the three
/// quantiles and beyond them.
fn below(quantiles: &Quantiles, log: f64) -> f64 {
    let piece = if log < quantiles[1] { 0 } else { 1 };
    let (low, high) = (
        quantiles[piece],
        quantiles[piece + 1].max(quantiles[piece] + 1e-6),
    );
    let z = Z[piece] + (log - low) / (high - low) * (Z[piece + 1] - Z[piece]);
    normal(z)
}

/// The standard normal distribution, within 1e-7 (Abramowitz and Stegun, 26.2.17).
fn normal(z: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.231_641_9 * z.abs());
    let series = [
        0.319_381_530,
        -0.356_563_782,
        1.781_477_937,
        -1.821_255_978,
        1.330_274_429,
    ];
    let sum = series.iter().rev().fold(0.0, |sum, a| (sum + a) * t);
    let tail = (-z * z / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt() * sum;
    if z > 0.0 { 1.0 - tail } else { tail }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alone(rate: f64, cores: usize) -> f64 {
        let requests = 1.0;
        Memcached::new(&Params::default()).p95(&[Part {
            rate,
            cores,
            requests,
        }])
    }

    #[test]
    fn latencies_are_those_of_the_scan() {
        let near = |value: f64, us: f64| assert!((value * 1e6 / us - 1.0).abs() < 0.01, "{value}");
        near(alone(30_000.0, 2), 584.0);
        near(alone(100_000.0, 2), 636.0);
        assert!(alone(60_000.0, 1) > 2.0 * alone(60_000.0, 2));
    }

    #[test]
    fn a_tail_shows_when_it_is_more_than_a_twentieth_of_the_requests() {
        let memcached = Memcached::new(&Params::default());
        let p95 = |slow: f64| {
            let part = |cores, requests| Part {
                rate: 100_000.0,
                cores,
                requests,
            };
            memcached.p95(&[part(1, slow), part(2, 1.0 - slow)])
        };
        assert!(p95(0.0) < p95(0.1) && p95(0.1) < p95(0.5) && p95(0.5) < p95(1.0));
    }
}
