// SPDX-License-Identifier: Apache-2.0
//! How fast a host does jobs, and how long its queue will take.

use std::time::Duration;

use crate::observed::{From, Observed};

/// What was done longer ago than this counts less than half: long enough to average over some dozens of
/// jobs, short enough to follow a host that slows down.
const HALF_LIFE: Duration = Duration::from_secs(3);
/// Fewer jobs than this, or less time, give no rate.
const FEWEST: f64 = 1.0;
const SHORTEST_S: f64 = 1.5;

/// Jobs that a host got, and what became of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Flow {
    /// Requests since the last figures, as proxies say; those that it did not take are taken off again.
    got: f64,
    /// Jobs since the last figures, as the host counts them itself: no proxy's word is better.
    counted: Option<f64>,
    /// Jobs that were done, older ones less.
    done: f64,
    /// Seconds that this took, older ones less.
    seconds: f64,
    /// By the last figures.
    in_progress: u32,
    measured: Option<Duration>,
}

impl Flow {
    pub(super) fn got(&mut self, requests: f64) {
        self.got += requests;
    }

    pub(super) fn counted(&mut self, jobs: f64) {
        *self.counted.get_or_insert(0.0) += jobs;
    }

    /// Whether the figures are newer than those that were taken in last.
    pub(super) fn is_news(&self, observed: &Observed) -> bool {
        self.measured.is_none_or(|measured| observed.at > measured)
    }

    /// Takes in figures: what the host counted, or what came and is not there any more, has been done.
    pub(super) fn observe(&mut self, observed: &Observed) {
        let in_progress = observed.figures.in_progress.unwrap_or(0);
        let counted = self.counted.take();
        let counted = counted.filter(|_| observed.from == From::Scrape);
        if let Some(measured) = self.measured {
            let passed = observed.at.saturating_sub(measured).as_secs_f64();
            let kept = 0.5f64.powf(passed / HALF_LIFE.as_secs_f64());
            let gone = f64::from(self.in_progress) - f64::from(in_progress);
            self.done = self.done * kept + counted.unwrap_or(self.got + gone).max(0.0);
            self.seconds = self.seconds * kept + passed;
        }
        (self.got, self.in_progress) = (0.0, in_progress);
        self.measured = Some(observed.at);
    }

    /// Jobs a second; none where too few were done to tell.
    pub(super) fn rate(&self) -> Option<f64> {
        (self.done >= FEWEST && self.seconds >= SHORTEST_S).then(|| self.done / self.seconds)
    }

    /// How long the queue will take (Little's law). Where its length or the rate is not known: how long the
    /// last jobs have waited. No less than half of that in any case: proxies that claim to have sent a lot do not make
    /// a queue short.
    pub(super) fn wait(&self, observed: &Observed) -> Option<Duration> {
        let figures = &observed.figures;
        let queued = figures.queued.as_ref().map(|classes| {
            let jobs = classes.iter().map(|jobs| u64::from(*jobs));
            jobs.sum::<u64>()
        });
        match (queued, self.rate()) {
            (Some(0), _) => Some(Duration::ZERO),
            (Some(queued), Some(rate)) => {
                let takes = Duration::try_from_secs_f64(queued as f64 / rate).ok();
                takes.max(figures.queuing_delay.map(|delay| delay / 2))
            }
            _ => figures.queuing_delay,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    fn observed(second: u64, in_progress: u32, queued: Option<u32>, delay_ms: u64) -> Observed {
        let at = Duration::from_secs(second);
        Observed {
            figures: Figures {
                in_progress: Some(in_progress),
                queued: queued.map(|jobs| vec![0, jobs]),
                queuing_delay: Some(Duration::from_millis(delay_ms)),
                ..Figures::default()
            },
            at,
            delay_at: at,
            from: crate::observed::From::Scrape,
        }
    }

    #[test]
    fn a_queue_takes_its_length_over_what_is_done_a_second() {
        let mut flow = Flow::default();
        // 20 come each second, 10 are done.
        for second in 0..10 {
            let jobs = 10 * second as u32;
            flow.observe(&observed(second, jobs, Some(jobs), 0));
            flow.got(20.0);
        }
        let last = observed(9, 90, Some(90), 0);
        assert!((flow.rate().unwrap() - 10.0).abs() < 1e-6);
        assert!((flow.wait(&last).unwrap().as_secs_f64() - 9.0).abs() < 1e-6);
        assert!(!flow.is_news(&last));
    }

    #[test]
    fn where_the_queue_or_the_rate_is_unknown_the_last_jobs_tell() {
        let mut flow = Flow::default();
        let first = observed(1, 9, Some(5), 700);
        flow.observe(&first);
        assert_eq!(flow.wait(&first), Some(Duration::from_millis(700)));
        assert_eq!(
            flow.wait(&observed(1, 9, None, 300)),
            Some(Duration::from_millis(300))
        );
        assert_eq!(
            flow.wait(&observed(1, 9, Some(0), 300)),
            Some(Duration::ZERO)
        );
    }

    #[test]
    fn what_a_host_counts_itself_is_done_whatever_proxies_say() {
        let mut flow = Flow::default();
        flow.observe(&observed(0, 0, Some(0), 0));
        flow.got(1000.0);
        flow.counted(4.0);
        flow.counted(2.0);
        flow.observe(&observed(2, 0, Some(0), 0));
        assert!((flow.rate().unwrap() - 3.0).abs() < 1e-6);
    }

    #[test]
    fn requests_that_were_not_taken_were_not_done() {
        let mut flow = Flow::default();
        flow.observe(&observed(0, 0, Some(0), 0));
        flow.got(10.0);
        flow.got(-4.0);
        flow.observe(&observed(2, 0, Some(0), 0));
        assert!((flow.rate().unwrap() - 3.0).abs() < 1e-6);
    }
}
