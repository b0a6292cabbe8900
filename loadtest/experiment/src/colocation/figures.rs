// SPDX-License-Identifier: Apache-2.0
//! What the rounds of a way say together.

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

/// Of a way over some rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Figures {
    /// Rounds.
    pub rounds: usize,
    /// In the light load.
    pub light: Violations,
    /// In the heavy load.
    pub heavy: Violations,
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
    for round in of_way {
        figures.rounds += 1;
        figures.light = figures.light.with(Violations::of(&round.light));
        figures.heavy = figures.heavy.with(Violations::of(&round.heavy));
        figures.batch_s += round.batch_s;
        figures.load_s += round.load_s;
    }
    let rounds = figures.rounds;
    (rounds > 0).then(|| Figures {
        batch_s: figures.batch_s / rounds as f64,
        load_s: figures.load_s / rounds as f64,
        ..figures
    })
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
    use super::*;

    /// A round with 10 intervals of each load.
    pub(crate) fn round(way: Way, interval_s: f64, violated: [u64; 2], batch_s: f64) -> Round {
        let part = |start_s, violated| Part {
            start_s,
            intervals: 10,
            violated,
            due: 100,
            answered: 100,
            figures: Vec::new(),
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
        let one = of(&rounds, Way::Blocks, Some(3.0)).unwrap();
        assert_eq!((one.all().intervals, one.all().violated), (20, 5));
        assert_eq!(of(&rounds, Way::LatencySlack, None), None);
        assert_eq!(intervals(&rounds), [10.0, 3.0]);
    }
}
