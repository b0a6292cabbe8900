// SPDX-License-Identifier: Apache-2.0
//! How fast a host does jobs, and how long its queue will take.

use std::time::Duration;

use weir_policy::steady::Waits;

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

    /// How long what is queued will wait, class by class: its length over what is done a second (Little's law), of the
    /// whole no less than half of how long the last jobs have waited, because proxies that claim to have sent a lot do
    /// not make a queue short. Where the queue or the rate is not known, what the last jobs have waited.
    pub(super) fn waits(&self, observed: &Observed) -> Option<Waits> {
        let figures = &observed.figures;
        let delay = figures.queuing_delay;
        let Some(queued) = &figures.queued else {
            return delay.map(Waits::of_all);
        };
        let all: u64 = queued.iter().copied().map(u64::from).sum();
        let (rate, mut jobs) = (self.rate(), 0);
        let by_class = queued.iter().map(|of_class| {
            jobs += u64::from(*of_class);
            if jobs == 0 {
                return Some(Duration::ZERO);
            }
            let Some(rate) = rate else {
                return delay;
            };
            let takes = Duration::try_from_secs_f64(jobs as f64 / rate).unwrap_or(Duration::MAX);
            let waited = figures.delay_of_now().filter(|_| jobs == all);
            let waited = waited.unwrap_or_default() / 2;
            Some(takes.max(waited))
        });
        by_class.collect::<Option<_>>().map(Waits::by_class)
    }
}

/// How long what is queued takes by its own work on all `millicores`, class by class; none where that is not known. The
/// rest of a wait is for what runs already, and that ends no sooner when less is admitted.
pub(super) fn own_work(observed: &Observed, millicores: u32) -> Option<Waits> {
    let work = observed.figures.work.as_ref()?;
    let mut needed = 0u64;
    let by_class = work.iter().map(|of_class| {
        needed = needed.saturating_add(*of_class);
        let takes = needed.saturating_mul(1000).checked_div(millicores.into())?;
        Some(Duration::from_micros(takes))
    });
    by_class.collect::<Option<_>>().map(Waits::by_class)
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
        let waits = flow.waits(&last).unwrap();
        assert!((waits.whole().as_secs_f64() - 9.0).abs() < 1e-6);
        assert_eq!(waits.of(0), Duration::ZERO);
        assert!(!flow.is_news(&last));
    }

    #[test]
    fn where_the_queue_or_the_rate_is_unknown_the_last_jobs_tell() {
        let mut flow = Flow::default();
        let first = observed(1, 9, Some(5), 700);
        flow.observe(&first);
        assert_eq!(
            flow.waits(&first),
            Some(Waits::by_class(vec![
                Duration::ZERO,
                Duration::from_millis(700)
            ]))
        );
        assert_eq!(
            flow.waits(&observed(1, 9, None, 300)),
            Some(Waits::of_all(Duration::from_millis(300)))
        );
        assert_eq!(
            flow.waits(&observed(1, 9, Some(0), 300)),
            Some(Waits::by_class(vec![Duration::ZERO; 2]))
        );
    }

    #[test]
    fn a_wait_that_is_told_late_is_no_floor_and_better_than_nothing() {
        let late = |mut observed: Observed| {
            observed.figures.delay_is_late = true;
            observed
        };
        let hung = late(observed(1, 9, Some(5), 7000));
        let waits = Flow::default().waits(&hung).unwrap();
        assert_eq!(
            waits.whole(),
            Duration::from_secs(7),
            "nothing else is known"
        );
        let (flow, last) = blocked();
        let told = |wait: u64, observed: &Observed| {
            let mut observed = observed.clone();
            observed.figures.queuing_delay = Some(Duration::from_secs(wait));
            flow.waits(&observed).unwrap().whole().as_secs_f64().round()
        };
        assert_eq!(told(40, &last), 20.0, "half of it");
        assert_eq!(told(40, &late(last)), 9.0, "by the queue");
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

    /// Ten jobs come and one is done each second; of class 0 three are queued, of class 1 six.
    fn blocked() -> (Flow, Observed) {
        let mut flow = Flow::default();
        for second in 0..10 {
            flow.observe(&observed(second, 9 * second as u32, None, 0));
            flow.got(10.0);
        }
        let mut last = observed(9, 9, None, 8000);
        last.figures.queued = Some(vec![3, 6]);
        (flow, last)
    }

    #[test]
    fn a_class_waits_for_itself_and_for_more_important_ones() {
        let (flow, last) = blocked();
        let waits = flow.waits(&last).unwrap();
        let seconds = [0, 1, 31].map(|class| waits.of(class).as_secs_f64().round());
        assert_eq!(seconds, [3.0, 9.0, 9.0]);
    }

    #[test]
    fn a_queues_own_work_is_known_where_work_and_cores_are() {
        let (_, mut last) = blocked();
        assert_eq!(own_work(&last, 4000), None);
        last.figures.work = Some(vec![2_000_000, 6_000_000]);
        let waits = own_work(&last, 4000).unwrap();
        assert_eq!(waits.of(0), Duration::from_millis(500));
        assert_eq!(waits.whole(), Duration::from_secs(2));
        assert_eq!(own_work(&last, 0), None);
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
