// SPDX-License-Identifier: Apache-2.0
//! From a host's running totals to the mean of the last window.

use std::time::Duration;

use std::time::Instant;

use weir_fleet::figures::Spell;

/// Total wait in seconds and number of jobs that waited, since the host started.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Totals {
    /// `_sum`.
    pub seconds: f64,
    /// `_count`.
    pub jobs: f64,
}

/// Remembers the previous page.
#[derive(Debug, Default)]
pub struct Window {
    previous: Option<(Totals, Instant)>,
    mean: Duration,
    left: Option<(f64, Duration)>,
    read: Option<Totals>,
    wrote: Option<Totals>,
}

impl Window {
    /// How many jobs left the queue between the last two pages, and the time between them.
    pub fn left(&self) -> Option<(f64, Duration)> {
        self.left
    }

    /// Prompts that were read since the previous page, and their time; none of the first page, or where totals fall.
    pub fn read(&mut self, totals: Option<Totals>) -> Option<Spell> {
        since(&mut self.read, totals)
    }

    /// The same of answers that were written.
    pub fn wrote(&mut self, totals: Option<Totals>) -> Option<Spell> {
        since(&mut self.wrote, totals)
    }

    /// The mean wait of the jobs that left the queue since the previous page.
    ///
    /// `idle` is whether nothing is queued, where that is known. If no job left the queue, an idle host
    /// has a delay of 0, and on a busy one every job waits at least as long as before plus the time since:
    /// a lower bound that grows until a job leaves. The first page gives nothing: its totals are of the
    /// host's whole life. Totals that fall mean that the host has restarted and count from zero.
    pub fn step(
        &mut self,
        totals: Option<Totals>,
        idle: Option<bool>,
        now: Instant,
    ) -> Option<Duration> {
        self.left = None;
        let Some(totals) = totals else {
            self.previous = None;
            return None;
        };
        let (before, at) = self.previous.replace((totals, now))?;
        let restarted = totals.jobs < before.jobs || totals.seconds < before.seconds;
        let zero = Totals {
            seconds: 0.0,
            jobs: 0.0,
        };
        let (before, last_mean) = if restarted {
            (zero, Duration::ZERO)
        } else {
            (before, self.mean)
        };
        let jobs = totals.jobs - before.jobs;
        self.left = Some((jobs, now.saturating_duration_since(at)));
        self.mean = if jobs > 0.0 {
            Duration::try_from_secs_f64((totals.seconds - before.seconds) / jobs).ok()?
        } else if idle? {
            Duration::ZERO
        } else {
            last_mean.saturating_add(now.saturating_duration_since(at))
        };
        Some(self.mean)
    }
}

fn since(previous: &mut Option<Totals>, totals: Option<Totals>) -> Option<Spell> {
    let before = std::mem::replace(previous, totals)?;
    let Totals { seconds, jobs } = totals?;
    let spell = Spell {
        prompts: jobs - before.jobs,
        seconds: seconds - before.seconds,
    };
    (spell.prompts > 0.0 && spell.seconds >= 0.0).then_some(spell)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(seconds: f64, jobs: f64) -> Option<Totals> {
        Some(Totals { seconds, jobs })
    }

    #[test]
    fn a_mean_that_nobody_can_have_grows_no_further() {
        let (mut window, t) = (Window::default(), Instant::now());
        let second = |n| t + Duration::from_secs(n);
        window.step(totals(0.0, 0.0), None, t);
        let mean = window.step(totals(1.84e19, 1.0), None, second(1));
        assert!(mean.is_some());
        let next = window.step(totals(1.84e19, 1.0), Some(false), second(1 << 58));
        assert!(next >= mean);
    }

    #[test]
    fn the_mean_is_of_the_window_not_of_the_hosts_life() {
        let (mut window, t) = (Window::default(), Instant::now());
        assert_eq!(window.step(totals(100.0, 10.0), Some(true), t), None);
        let next = t + Duration::from_secs(1);
        assert_eq!(
            window.step(totals(101.0, 14.0), Some(true), next),
            Some(Duration::from_millis(250))
        );
        assert_eq!(window.left(), Some((4.0, Duration::from_secs(1))));
        assert_eq!(
            window.step(totals(101.0, 14.0), Some(true), next),
            Some(Duration::ZERO)
        );
    }

    #[test]
    fn prompts_are_counted_from_page_to_page_and_not_where_an_engine_began_anew() {
        let mut window = Window::default();
        let mut read = |totals| window.read(totals);
        assert_eq!(read(totals(100.0, 10.0)), None);
        let two = Spell {
            prompts: 2.0,
            seconds: 3.0,
        };
        assert_eq!(read(totals(103.0, 12.0)), Some(two));
        assert_eq!(read(totals(103.0, 12.0)), None);
        assert_eq!(read(totals(1.0, 5.0)), None);
        assert_eq!(read(None), None);
        assert_eq!(read(totals(2.0, 6.0)), None);
        // Answers have totals of their own.
        assert_eq!(window.wrote(totals(7.0, 1.0)), None);
        let one = Spell {
            prompts: 1.0,
            seconds: 2.0,
        };
        assert_eq!(window.wrote(totals(9.0, 2.0)), Some(one));
    }

    #[test]
    fn a_queue_that_nobody_leaves_gets_longer_by_the_time_that_passes() {
        let (mut window, t) = (Window::default(), Instant::now());
        let second = Duration::from_secs(1);
        window.step(totals(0.0, 0.0), Some(false), t);
        window.step(totals(2.0, 1.0), Some(false), t + second);
        assert_eq!(
            window.step(totals(2.0, 1.0), Some(false), t + 2 * second),
            Some(3 * second)
        );
        assert_eq!(
            window.step(totals(2.0, 1.0), Some(false), t + 4 * second),
            Some(5 * second)
        );
        assert_eq!(window.step(totals(2.0, 1.0), None, t + 5 * second), None);
    }

    #[test]
    fn a_restarted_host_counts_from_zero() {
        let (mut window, t) = (Window::default(), Instant::now());
        window.step(totals(50.0, 100.0), Some(true), t);
        assert_eq!(
            window.step(totals(1.0, 4.0), Some(true), t),
            Some(Duration::from_millis(250))
        );
        assert_eq!(
            window.step(totals(0.0, 0.0), Some(true), t),
            Some(Duration::ZERO)
        );
    }
}
