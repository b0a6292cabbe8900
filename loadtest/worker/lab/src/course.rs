// SPDX-License-Identifier: Apache-2.0
//! The course of response times over a run, and where it thrashes.

use std::fmt;
use std::time::Duration;

use crate::real::Outcome;

/// Windows of a run.
const WINDOWS: usize = 60;
/// Mean response of a window, in multiples of the median of the first half's, from which on
/// it counts as thrashing if no later window is below. Document 003 reads it off its plots.
const LIMIT: f64 = 20.0;

/// Response times by the arrival of their jobs.
#[derive(Debug)]
pub(crate) struct Course {
    /// Middle of a window and mean response in it, both in seconds.
    pub(crate) windows: Vec<(f64, f64)>,
    /// Of the jobs that came before half of the highest rate, seconds.
    pub(crate) mean_below_half: f64,
    /// Of the jobs that came between 70 % and 75 % of the highest rate, seconds.
    pub(crate) mean_busy: f64,
    /// Of all jobs, seconds.
    pub(crate) mean: f64,
    /// The rate at which it began to thrash, jobs a second.
    pub(crate) thrash_rate: Option<f64>,
    /// Jobs that had not ended when the run was cut off.
    pub(crate) cut_off: usize,
}

impl Course {
    /// A run of jobs that were waited for until `patience` after its end.
    pub(crate) fn new(
        outcomes: &[Outcome],
        top_rate: f64,
        lasts: Duration,
        patience: Duration,
    ) -> Self {
        let seconds = lasts.as_secs_f64();
        let width = seconds / WINDOWS as f64;
        // A job that was cut off has waited for at least so long.
        let at_least = |o: &Outcome| (lasts + patience).saturating_sub(o.at);
        let of = |o: &Outcome| o.response.unwrap_or_else(|| at_least(o)).as_secs_f64();
        let mut sums = vec![(0.0, 0u32); WINDOWS];
        for outcome in outcomes {
            let window = (outcome.at.as_secs_f64() / width) as usize;
            let (sum, n) = &mut sums[window.min(WINDOWS - 1)];
            *sum += of(outcome);
            *n += 1;
        }
        let middle = |at: usize| (at as f64 + 0.5) * width;
        let windows: Vec<_> = sums
            .iter()
            .enumerate()
            .filter(|(_, (_, n))| *n > 0)
            .map(|(at, (sum, n))| (middle(at), sum / f64::from(*n)))
            .collect();
        let first_half = windows[..windows.len() / 2].iter().map(|(_, mean)| *mean);
        let usual = weir_report::median(&first_half.collect::<Vec<_>>());
        let limit = LIMIT * usual.unwrap_or(f64::INFINITY);
        let thrashes_at = thrash(&windows, limit).map(|at| at - width / 2.0);
        let between = |from: f64, to: f64| {
            let of_the_run = |o: &&Outcome| {
                let place = o.at.as_secs_f64() / seconds;
                from <= place && place < to
            };
            mean(outcomes.iter().filter(of_the_run).map(of))
        };
        Self {
            mean_below_half: between(0.0, 0.5),
            mean_busy: between(0.7, 0.75),
            mean: mean(outcomes.iter().map(of)),
            thrash_rate: thrashes_at.map(|at| top_rate * at / seconds),
            cut_off: outcomes.iter().filter(|o| o.response.is_none()).count(),
            windows,
        }
    }
}

/// The first window from which on none is below the limit.
fn thrash(windows: &[(f64, f64)], limit: f64) -> Option<f64> {
    let above = windows.iter().rev().take_while(|(_, mean)| *mean >= limit);
    above.last().map(|(at, _)| *at)
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    if n > 0.0 { sum / n } else { f64::NAN }
}

impl fmt::Display for Course {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "mean {:.1} ms", self.mean * 1e3)?;
        match self.thrash_rate {
            Some(rate) => write!(f, ", thrashes at {rate:.0}/s")?,
            None => write!(f, ", does not thrash")?,
        }
        match self.cut_off {
            0 => Ok(()),
            n => write!(f, ", {n} jobs were cut off"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(at: u64, response_ms: u64) -> Outcome {
        Outcome {
            at: Duration::from_secs(at),
            class: 16,
            response: Some(Duration::from_millis(response_ms)),
            spent: None,
        }
    }

    #[test]
    fn it_thrashes_from_where_it_never_recovers() {
        let slow = |at: u64| at == 20 || at >= 45;
        let outcomes: Vec<_> = (0..60)
            .map(|at| outcome(at, if slow(at) { 700 } else { 10 }))
            .collect();
        let course = Course::new(&outcomes, 200.0, Duration::from_secs(60), Duration::ZERO);
        assert_eq!(course.thrash_rate, Some(150.0));
        assert_eq!(course.windows.len(), 60);
    }

    #[test]
    fn a_fast_run_does_not_thrash() {
        let outcomes: Vec<_> = (0..60).map(|at| outcome(at, 10)).collect();
        let course = Course::new(&outcomes, 200.0, Duration::from_secs(60), Duration::ZERO);
        assert_eq!(course.thrash_rate, None);
        assert!((course.mean - 0.01).abs() < 1e-9);
    }
}
