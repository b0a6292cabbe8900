// SPDX-License-Identifier: Apache-2.0
//! A run over time: what its figures are drawn from.

use super::published::JOBS;

/// An interval of the load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// Seconds from the start.
    pub at_s: f64,
    /// Requests a second.
    pub rate: f64,
    /// Of its requests, in seconds.
    pub p95_s: f64,
}

/// Some time in which a job was at one place.
#[derive(Debug, Clone, PartialEq)]
pub struct Stretch {
    /// Seconds from the start.
    pub from_s: f64,
    /// See `from_s`.
    pub to_s: f64,
    /// Its cores; none while it is paused.
    pub place: Option<String>,
}

/// Where a job was when.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct JobHistory {
    /// In order, each from where the last one ended.
    pub stretches: Vec<Stretch>,
}

impl JobHistory {
    /// The job is there until it is seen next; at no place it is paused.
    pub(super) fn see(&mut self, now: f64, place: Option<String>) {
        self.end(now);
        if self.stretches.last().is_none_or(|last| last.place != place) {
            self.stretches.push(Stretch {
                from_s: now,
                to_s: now,
                place,
            });
        }
    }

    pub(super) fn end(&mut self, now: f64) {
        if let Some(last) = self.stretches.last_mut() {
            last.to_s = now;
        }
    }

    /// Seconds from the start until it began.
    #[must_use]
    pub fn started_s(&self) -> Option<f64> {
        self.stretches.first().map(|first| first.from_s)
    }

    /// Seconds from the start until it ended, or the run did.
    #[must_use]
    pub fn ended_s(&self) -> Option<f64> {
        self.stretches.last().map(|last| last.to_s)
    }

    /// How often it was paused, and for how many seconds altogether.
    #[must_use]
    pub fn pauses(&self) -> (usize, f64) {
        let paused = self.stretches.iter().filter(|one| one.place.is_none());
        let seconds = paused.clone().map(|one| one.to_s - one.from_s).sum();
        (paused.count(), seconds)
    }
}

/// All that figures show.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History {
    /// In order of time.
    pub intervals: Vec<Interval>,
    /// Since when memcached had so many cores.
    pub cores: Vec<(f64, usize)>,
    /// In the order of [`JOBS`].
    pub jobs: [JobHistory; JOBS.len()],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_that_pauses_has_a_stretch_for_each_place_and_each_pause() {
        let mut job = JobHistory::default();
        assert_eq!(job.started_s(), None);
        let place = |name: &str| Some(name.to_owned());
        for (now, at) in [
            (1.0, place("1")),
            (2.0, place("1")),
            (3.0, None),
            (5.0, place("1")),
            (6.0, place("2-3")),
        ] {
            job.see(now, at);
        }
        job.end(9.0);
        assert_eq!((job.started_s(), job.ended_s()), (Some(1.0), Some(9.0)));
        assert_eq!(job.pauses(), (1, 2.0));
        let ends: Vec<f64> = job.stretches.iter().map(|one| one.to_s).collect();
        assert_eq!(ends, [3.0, 5.0, 6.0, 9.0]);
    }
}
