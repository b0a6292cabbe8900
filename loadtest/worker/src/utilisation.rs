// SPDX-License-Identifier: Apache-2.0
//! The two figures of ORCA's standard that weighted round robin goes by (gRFC A58): utilisation, and requests a
//! second.
//!
//! Envoy refuses a TEXT report whole that holds a name which it does not know, and `request_cost` is one: these two
//! stand alone, instead of [`crate::orca::text`].

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Both figures are means of so long.
const WINDOW: Duration = Duration::from_secs(1);

/// Answers of the last second, and how many jobs the host had at each.
#[derive(Debug, Default)]
pub struct Utilisation {
    answers: VecDeque<(Instant, u32)>,
}

impl Utilisation {
    /// The header's value on an answer now, by a host that has so many jobs besides the answered one.
    /// Above 1 jobs wait.
    pub fn text(&mut self, in_progress: u32, cores: usize, now: Instant) -> String {
        // Envoy ignores a utilisation of 0: the job that is answered has just been one.
        self.answers.push_back((now, in_progress.saturating_add(1)));
        let old = |(at, _): &(Instant, u32)| now.saturating_duration_since(*at) > WINDOW;
        while self.answers.front().is_some_and(old) {
            self.answers.pop_front();
        }
        let jobs: f64 = self.answers.iter().map(|(_, jobs)| f64::from(*jobs)).sum();
        let answers = self.answers.len() as f64;
        let utilisation = jobs / answers / cores.max(1) as f64;
        let rate = answers / WINDOW.as_secs_f64();
        format!("TEXT application_utilization={utilisation:.6},rps_fractional={rate:.3}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_figures_are_of_the_last_second() {
        let (mut utilisation, begin) = (Utilisation::default(), Instant::now());
        let mut at = |ms, in_progress| {
            let now = begin + Duration::from_millis(ms);
            utilisation.text(in_progress, 4, now)
        };
        let alone = "TEXT application_utilization=0.250000,rps_fractional=1.000";
        assert_eq!(at(0, 0), alone);
        let two = "TEXT application_utilization=1.125000,rps_fractional=2.000";
        assert_eq!(at(500, 7), two);
        assert_eq!(at(2000, 0), alone);
    }
}
