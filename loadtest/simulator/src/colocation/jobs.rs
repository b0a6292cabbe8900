// SPDX-License-Identifier: Apache-2.0
//! How jobs scale and what disturbs them, from measured times.

use super::published::JOBS;

/// `parsec_times.csv`: PARSEC jobs by threads, and with one thread beside an antagonist. See its README.
const TIMES: &str = include_str!("../../../traces/parsec_times.csv");

/// How a job speeds up, and how others slow it down.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Scaling {
    /// Threads and speed beside one thread, ascending.
    speeds: Vec<(f64, f64)>,
    /// Times as slow beside iBench's antagonist of the last-level cache.
    disturbed: f64,
    /// How far its time is spread from run to run: sigma of a lognormal.
    spread: f64,
}

impl Scaling {
    /// Of each of the document's jobs. Nothing was measured of fft ("no information", part 3.2): it gains by two
    /// threads what blackscholes does and nothing by more, and is disturbed as SPLASH-2's radix.
    pub(super) fn all() -> [Self; 6] {
        JOBS.map(|job| match job {
            "fft" => {
                let two = Self::of("blackscholes").speed(2.0);
                Self {
                    speeds: vec![(1.0, 1.0), (2.0, two)],
                    ..Self::of("radix")
                }
            }
            job => Self::of(job),
        })
    }

    fn of(job: &str) -> Self {
        let rows = TIMES.lines().skip(1).map(|line| line.split(','));
        let rows = rows.map(Iterator::collect::<Vec<_>>);
        let (mut speeds, mut runs) = (Vec::new(), Vec::new());
        let (mut alone, mut beside) = (1.0, 1.0);
        for row in rows.filter(|row| row[1] == job) {
            let number = |column: usize| row[column].parse::<f64>().expect("a number");
            match (row[0], row[3]) {
                ("2b", _) => speeds.push((number(2), number(4))),
                ("3", _) => runs.push(number(4).ln()),
                (_, "none") => alone = number(4),
                (_, "llc") => beside = number(4),
                _ => {}
            }
        }
        let one = speeds[0].1;
        Self {
            speeds: speeds.iter().map(|(n, s)| (*n, one / s)).collect(),
            disturbed: beside / alone,
            spread: deviation(&runs),
        }
    }

    /// How far its time is spread from run to run: sigma of a lognormal.
    pub(super) fn spread(&self) -> f64 {
        self.spread
    }

    /// Beside one thread, with so many that have a core each; between what was measured in a straight line.
    /// More threads than the fastest number do not slow it down.
    pub(super) fn speed(&self, threads: f64) -> f64 {
        let mut best: f64 = 0.0;
        let mut last = (0.0, 0.0);
        for &(n, speed) in &self.speeds {
            if threads <= n {
                let between = last.1 + (speed - last.1) * (threads - last.0) / (n - last.0);
                return best.max(between);
            }
            best = best.max(speed);
            last = (n, best);
        }
        best
    }

    /// Times as slow beside so many antagonists.
    pub(super) fn slowdown(&self, antagonists: f64) -> f64 {
        1.0 + (self.disturbed - 1.0) * antagonists
    }
}

/// Standard deviation of what these are a sample of.
fn deviation(sample: &[f64]) -> f64 {
    let mean = sample.iter().sum::<f64>() / sample.len() as f64;
    let squares: f64 = sample.iter().map(|one| (one - mean).powi(2)).sum();
    (squares / (sample.len() as f64 - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_scale_as_they_were_measured() {
        let all = Scaling::all();
        let ferret = &all[2];
        assert!((ferret.speed(2.0) - 327.789 / 166.766).abs() < 1e-9);
        assert!((ferret.speed(0.5) - 0.5).abs() < 1e-9);
        let dedup = &all[0];
        assert_eq!(
            dedup.speed(8.0),
            dedup.speed(4.0),
            "it slows down beyond four"
        );
        for job in &all {
            let speeds: Vec<f64> = (0..40).map(|n| job.speed(f64::from(n) / 4.0)).collect();
            assert!(speeds.is_sorted());
            assert!(job.disturbed > 1.0);
            assert!(job.spread > 0.0 && job.spread < 0.03, "{job:?}");
        }
        assert!(all[0].spread > 5.0 * ferret.spread, "{all:?}");
    }
}
