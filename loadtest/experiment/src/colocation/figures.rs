// SPDX-License-Identifier: Apache-2.0
//! What the rounds of a way say together.

use std::fmt;

use weir_memcached_load::interval::Figures as Interval;

use crate::colocation::rounds::{Part, Round};
use crate::colocation::way::Way;

/// Intervals and those that violated the SLO.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Violations {
    /// How many there were.
    pub intervals: u64,
    /// Of which so many violated it.
    pub violated: u64,
}

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (percent, violated, intervals) = (100.0 * self.share(), self.violated, self.intervals);
        write!(f, "{percent:.1} % ({violated} of {intervals})")
    }
}

/// Of a way over some rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Rounds.
    pub rounds: usize,
    /// In the light load.
    pub light: Violations,
    /// In the heavy load.
    pub heavy: Violations,
    /// In milliseconds, the upper median of the intervals' p95 in the light load; infinite where more than 5 of 100
    /// requests had no good answer in it.
    pub light_p95_ms: f64,
    /// The same in the heavy load.
    pub heavy_p95_ms: f64,
    /// Requests of both loads that were answered, a second.
    pub served_qps: f64,
    /// Mean time from the start to the last job's end.
    pub batch_s: f64,
    /// Mean length of the loads.
    pub load_s: f64,
}

impl Violations {
    /// Both.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            intervals: self.intervals + other.intervals,
            violated: self.violated + other.violated,
        }
    }

    /// 0 to 1.
    #[must_use]
    pub fn share(self) -> f64 {
        self.violated as f64 / self.intervals.max(1) as f64
    }

    fn of(part: &Part) -> Self {
        Self {
            intervals: part.intervals,
            violated: part.violated,
        }
    }
}

impl Figures {
    /// Of both loads.
    #[must_use]
    pub fn all(&self) -> Violations {
        self.light.with(self.heavy)
    }
}

/// Of a way, over the rounds with this interval or over all; none where it was not run.
#[must_use]
pub fn of(rounds: &[Round], way: Way, interval_s: Option<f64>) -> Option<Figures> {
    let of_way = rounds.iter().filter(|round| {
        round.way == way && interval_s.is_none_or(|interval| round.interval_s == interval)
    });
    let mut figures = Figures::default();
    let (mut light, mut heavy) = (Vec::new(), Vec::new());
    for round in of_way {
        light.extend(&round.light.figures);
        heavy.extend(&round.heavy.figures);
        figures.rounds += 1;
        figures.light = figures.light.with(Violations::of(&round.light));
        figures.heavy = figures.heavy.with(Violations::of(&round.heavy));
        figures.batch_s += round.batch_s;
        figures.load_s += round.load_s;
    }
    let rounds = figures.rounds;
    (rounds > 0).then(|| Figures {
        light_p95_ms: typical_p95_ms(&light),
        heavy_p95_ms: typical_p95_ms(&heavy),
        served_qps: served_qps([light, heavy].concat()),
        batch_s: figures.batch_s / rounds as f64,
        load_s: figures.load_s / rounds as f64,
        ..figures
    })
}

/// The upper median of their p95.
pub(crate) fn typical_p95_ms(intervals: &[&Interval]) -> f64 {
    let p95 = |one: &&Interval| {
        one.latency
            .p95_us
            .map_or(f64::INFINITY, |us| us as f64 / 1e3)
    };
    let mut all: Vec<f64> = intervals.iter().map(p95).collect();
    all.sort_by(f64::total_cmp);
    all.get(all.len() / 2).copied().unwrap_or(f64::NAN)
}

/// Requests that were answered, a second.
pub(crate) fn served_qps(intervals: Vec<&Interval>) -> f64 {
    let sum = |of: fn(&Interval) -> f64| intervals.iter().map(|one| of(one)).sum::<f64>();
    sum(|one| one.achieved_qps * one.length_s) / sum(|one| one.length_s)
}

/// The intervals that were run, longest first.
#[must_use]
pub fn intervals(rounds: &[Round]) -> Vec<f64> {
    let mut found: Vec<f64> = rounds.iter().map(|round| round.interval_s).collect();
    found.sort_by(|one, other| other.total_cmp(one));
    found.dedup();
    found
}

#[cfg(test)]
pub(crate) mod tests {
    use weir_memcached_load::interval::{Counts, Latency};

    use super::*;

    /// Of a second, with a p95 of as many milliseconds as its number, and 10 more where it violates the SLO.
    fn interval(number: u64, violated: bool) -> Interval {
        Interval {
            interval: number,
            start_s: number as f64,
            length_s: 1.0,
            target_qps: 12.0,
            achieved_qps: 10.0,
            counts: Counts::default(),
            latency: Latency {
                p95_us: Some(1_000 * (number + if violated { 10 } else { 0 })),
                ..Latency::default()
            },
            client_late_p95_us: None,
            in_flight_max: 0,
            violated,
        }
    }

    /// A round with 10 intervals of each load.
    pub(crate) fn round(way: Way, interval_s: f64, violated: [u64; 2], batch_s: f64) -> Round {
        let part = |start_s, violated| Part {
            start_s,
            intervals: 10,
            violated,
            due: 100,
            answered: 100,
            figures: (0..10)
                .map(|number| interval(number, number < violated))
                .collect(),
        };
        Round {
            repeat: 0,
            interval_s,
            way,
            light: part(0.0, violated[0]),
            heavy: part(30.0, violated[1]),
            load_s: 60.0,
            batch_s,
            jobs: Vec::new(),
            samples: Vec::new(),
        }
    }

    #[test]
    fn violations_are_summed_and_times_are_means() {
        let rounds = [
            round(Way::Blocks, 10.0, [1, 2], 50.0),
            round(Way::Blocks, 3.0, [0, 5], 70.0),
            round(Way::NoGovernor, 3.0, [9, 9], 40.0),
        ];
        let all = of(&rounds, Way::Blocks, None).unwrap();
        assert_eq!((all.rounds, all.batch_s), (2, 60.0));
        assert_eq!((all.light.violated, all.heavy.violated), (1, 7));
        assert_eq!(all.all().share(), 0.2);
        // The eleventh of twenty, of which the violated ones are last.
        assert_eq!((all.light_p95_ms, all.heavy_p95_ms), (5.0, 8.0));
        assert_eq!(all.served_qps, 10.0);
        let one = of(&rounds, Way::Blocks, Some(3.0)).unwrap();
        assert_eq!((one.all().intervals, one.all().violated), (20, 5));
        assert_eq!(of(&rounds, Way::LatencySlack, None), None);
        assert_eq!(intervals(&rounds), [10.0, 3.0]);
    }
}
