// SPDX-License-Identifier: Apache-2.0
//! Requests of all callers at one host, by their reports: newer than its last poll, and all that is known of a host that
//! tells nothing.
//!
//! Of requests that end before the next report the mean counts, and of longer ones the newest report. The host's own
//! figures count what others than these callers send as well, and a moment that no report is of. So what it told
//! beyond the callers' requests is smoothed, and added to them. How many cores a job holds the host alone
//! knows: the callers' change of the number of jobs leaves that as it was told, and so what waits.

use std::time::Duration;

use crate::figures::Figures;
use crate::observed::{From, Observed};
use crate::requests::{Change, Requests, SPAN};
use crate::sharing::{Cores, moved};

/// Requests at one host.
#[derive(Debug, Default)]
pub struct UnderWay {
    /// None where no caller ever told of the host.
    requests: Option<Requests>,
    /// Requests that the host told beyond these, smoothed; none where it never told any.
    others: Option<f64>,
    /// Cores that the host ever told it uses at a time: those that it has at least.
    seen: u32,
    /// When the host is expected to have read all prompts that the callers sent; none where no caller ever told.
    read_at: Option<Duration>,
}

/// What callers say that a host has to read counts no longer than this: a prompt of a million tokens takes minutes.
const MOST_READING: Duration = Duration::from_secs(600);

/// Weight of the newest figures in what is smoothed: about ten of them count.
const WEIGHT: f64 = 0.1;

/// What is smoothed differs from the newest figures by no more than all jobs that the host told, its cores, or this: more
/// than a moment explains, and a sidecar's lie counts no longer than until the host is asked again.
const FEW: u32 = 8;

impl UnderWay {
    /// A report tells of the host.
    pub fn moved(&mut self, change: Change, now: Duration) {
        let requests = self.requests.get_or_insert_with(|| Requests::none(now));
        requests.take(change, now);
        if change.is_found
            && let Some(others) = &mut self.others
        {
            *others -= change.by as f64;
        }
    }

    /// Callers sent prompts that the host reads for so long, one after another.
    pub fn reads(&mut self, reading: Duration, now: Duration) {
        let before = self.read_at.unwrap_or_default().max(now);
        let after = before.saturating_add(reading);
        self.read_at = Some(after.min(now.saturating_add(MOST_READING)));
    }

    /// The host said then what it does: what has nothing to do has read all, whatever was expected. More than what waits
    /// there by its own word callers do not believe, each for itself.
    pub fn has_read(&mut self, figures: &Figures, at: Duration) {
        let requests = self.requests.as_ref();
        if figures.jobs() == 0 && requests.is_none_or(|requests| requests.newest <= 0) {
            self.read_at = self.read_at.map(|read_at| read_at.min(at));
        }
    }

    /// The host's own figures came; it has `cores`, 0 where unknown.
    pub fn told(&mut self, figures: &Figures, cores: u32, at: Duration) {
        self.seen = self.seen.max(figures.used_cores());
        if let Some(jobs) = figures.in_progress {
            let requests = self.requests.as_ref();
            let beyond = f64::from(jobs) - requests.map_or(0.0, |requests| requests.expected(at));
            let others = self.others.get_or_insert(beyond);
            let most = f64::from(jobs.max(cores).max(FEW));
            let smoothed = *others + WEIGHT * (beyond - *others);
            *others = smoothed.clamp(beyond - most, beyond + most);
        }
    }

    /// The host's newest figures: its `own`, where no caller can know more of it; with `cores` of its, 0 where unknown.
    pub fn newest(&self, own: Option<&Observed>, cores: u32, now: Duration) -> Option<Observed> {
        let mut newest = self.newest_requests(own, cores, now)?;
        if let Some(read_at) = self.read_at {
            let unread = read_at.saturating_sub(newest.at).as_micros();
            // Of the class that waits, so that it delays no other.
            let waiting = newest.figures.queued.as_deref().unwrap_or_default();
            let mut work = vec![0; waiting.len().saturating_sub(1)];
            work.push(u64::try_from(unread).unwrap_or(u64::MAX));
            newest.figures.work = Some(work);
        }
        Some(newest)
    }

    fn newest_requests(
        &self,
        own: Option<&Observed>,
        cores: u32,
        now: Duration,
    ) -> Option<Observed> {
        let at = now.saturating_sub(SPAN);
        let Some(requests) = &self.requests else {
            return own.cloned();
        };
        let requests = requests.expected(now);
        let Some(own) = own else {
            let requests = requests.round() as i64;
            let figures = moved(&Figures::default(), requests, self.cores(cores));
            return Some(Observed {
                figures,
                at,
                delay_at: at,
                from: From::Callers,
            });
        };
        if own.at >= at {
            return Some(own.clone());
        }
        let jobs = requests + self.others.unwrap_or(0.0);
        let change = (jobs.round() as i64).saturating_sub_unsigned(own.figures.jobs());
        Some(Observed {
            figures: moved(&own.figures, change, self.cores(cores)),
            at,
            from: From::Callers,
            ..*own
        })
    }

    fn cores(&self, cores: u32) -> Cores {
        match cores {
            0 => Cores::AtLeast(self.seen.max(1)),
            cores => Cores::Known(cores),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const NOW: Duration = Duration::from_secs(10);

    fn more(by: i64) -> Change {
        Change {
            by,
            ended: 0,
            is_found: false,
        }
    }

    fn own(age: Duration, in_progress: u32) -> Observed {
        let figures = Figures {
            in_progress: Some(in_progress),
            queued: Some(vec![1, in_progress.saturating_sub(5)]),
            busy_cores: Some(in_progress.min(4)),
            work: Some(vec![1_000, 3_000]),
            ..Figures::default()
        };
        let at = NOW - age;
        Observed {
            figures,
            at,
            delay_at: at,
            from: From::Scrape,
        }
    }

    fn jobs(observed: Option<Observed>) -> Option<(u32, From)> {
        let observed = observed?;
        Some((observed.figures.in_progress?, observed.from))
    }

    #[test]
    fn a_host_that_tells_nothing_has_what_callers_have_under_way() {
        let mut under_way = UnderWay::default();
        assert_eq!(under_way.newest(None, 4, NOW), None);
        under_way.moved(more(7), NOW);
        under_way.moved(more(-1), NOW);
        let known = under_way.newest(None, 4, NOW).unwrap();
        assert_eq!(known.figures.in_progress, Some(6));
        assert_eq!(known.figures.queued, Some(vec![2]));
        assert_eq!(known.figures.busy_cores, Some(4));
        assert_eq!((known.figures.work, known.at), (None, NOW - SPAN));
        let known = under_way.newest(None, 0, NOW).unwrap();
        assert_eq!(known.figures.queued, None, "nobody knows its cores");
    }

    #[test]
    fn what_callers_sent_to_be_read_is_read_one_after_another() {
        let second = Duration::from_secs(1);
        let mut under_way = UnderWay::default();
        let work = |under_way: &UnderWay, own: &Observed, now| {
            let newest = under_way.newest(Some(own), 4, now).unwrap();
            let work = newest.figures.work.unwrap();
            (work.iter().sum::<u64>(), now - newest.at)
        };
        let just_now = own(Duration::ZERO, 9);
        assert_eq!(
            work(&under_way, &just_now, NOW).0,
            4_000,
            "as the host says"
        );
        under_way.reads(second, NOW);
        under_way.reads(2 * second, NOW);
        assert_eq!(
            work(&under_way, &just_now, NOW),
            (3_000_000, Duration::ZERO)
        );
        // Of the moment that the figures are of.
        under_way.moved(more(1), NOW);
        let later = NOW + second;
        assert_eq!(work(&under_way, &just_now, later), (2_100_000, SPAN));
        under_way.reads(second, later);
        assert_eq!(work(&under_way, &just_now, later), (3_100_000, SPAN));
        let idle = NOW + 60 * second;
        assert_eq!(work(&under_way, &just_now, idle).0, 0);
        under_way.reads(second, idle);
        assert_eq!(work(&under_way, &just_now, idle).0, 1_100_000);
        under_way.reads(Duration::MAX, idle);
        let most = (MOST_READING + SPAN).as_micros() as u64;
        assert_eq!(
            work(&under_way, &just_now, idle).0,
            most,
            "a lie has an end"
        );
        under_way.has_read(&just_now.figures, idle);
        assert_eq!(work(&under_way, &just_now, idle).0, most, "it is at work");
        under_way.moved(more(-1), NOW);
        under_way.has_read(&Figures::default(), idle);
        assert_eq!(work(&under_way, &just_now, idle).0, 100_000, "until then");
    }

    #[test]
    fn what_callers_sent_since_is_added_to_the_hosts_own_figures() {
        let mut under_way = UnderWay::default();
        under_way.moved(more(5), NOW);
        under_way.told(&own(Duration::ZERO, 8).figures, 4, NOW);
        let own = own(Duration::from_secs(1), 8);
        let newest = |under_way: &UnderWay| under_way.newest(Some(&own), 4, NOW);
        assert_eq!(jobs(newest(&under_way)), Some((8, From::Callers)));
        under_way.moved(more(4), NOW);
        let known = newest(&under_way).unwrap();
        assert_eq!(known.figures.in_progress, Some(12));
        assert_eq!(known.figures.queued, Some(vec![2, 6]), "by class as before");
        assert_eq!(known.figures.work, None);
        under_way.moved(more(-9), NOW);
        assert_eq!(jobs(newest(&under_way)), Some((3, From::Callers)));
        under_way.moved(more(-9), NOW);
        assert_eq!(jobs(newest(&under_way)), Some((0, From::Callers)));
    }

    #[test]
    fn a_host_whose_cores_nobody_knows_has_those_that_it_ever_used() {
        let told = |in_progress| Figures {
            in_progress: Some(in_progress),
            queued: Some(vec![0]),
            ..Figures::default()
        };
        let at = NOW - Duration::from_secs(1);
        let idle = Observed {
            figures: told(0),
            at,
            delay_at: at,
            from: From::Scrape,
        };
        let mut under_way = UnderWay::default();
        under_way.moved(more(0), NOW);
        let jobs_and_queue = |under_way: &UnderWay| {
            let newest = under_way.newest(Some(&idle), 0, NOW).unwrap().figures;
            (newest.in_progress.unwrap(), newest.queued.unwrap())
        };
        assert_eq!(jobs_and_queue(&under_way), (0, vec![0]));
        under_way.moved(more(1), NOW);
        assert_eq!(jobs_and_queue(&under_way), (1, vec![0]), "one it has");
        under_way.moved(more(3), NOW);
        assert_eq!(jobs_and_queue(&under_way), (4, vec![3]));
        under_way.told(&told(3), 0, NOW);
        under_way.told(&told(0), 0, NOW);
        let (jobs, queue) = jobs_and_queue(&under_way);
        assert_eq!(jobs - queue[0], 3, "of {jobs} jobs");
    }

    /// What callers tell a tenth of a second apart: so many under way, and so many that ended since.
    fn reports(under_way: &mut UnderWay, told: impl IntoIterator<Item = (i64, u64)>) -> Duration {
        let (mut now, mut before) = (NOW, 0);
        for (requests, ended) in told {
            now += SPAN;
            let by = requests - before;
            under_way.moved(Change { ended, ..more(by) }, now);
            before = requests;
        }
        now
    }

    fn known(under_way: &UnderWay, now: Duration) -> u32 {
        let newest = under_way.newest(None, 4, now).unwrap();
        newest.figures.in_progress.unwrap()
    }

    #[test]
    fn of_short_requests_the_mean_counts_and_no_moment() {
        let mut under_way = UnderWay::default();
        let told = [(3, 90), (0, 90), (0, 90)].into_iter().cycle();
        for at_the_end in 90..93 {
            let mut under_way = UnderWay::default();
            let now = reports(&mut under_way, told.clone().take(at_the_end));
            assert_eq!(known(&under_way, now), 1);
        }
        // None has ended since: they take long now.
        let hang = told.take(90).chain([(7, 0)]);
        let now = reports(&mut under_way, hang);
        let later = |spans: u32| known(&under_way, now + spans * SPAN);
        assert!(later(0) < 4 && later(5) >= 4 && later(20) == 7);
    }

    #[test]
    fn of_long_requests_the_newest_count() {
        let mut under_way = UnderWay::default();
        let told = [(4, 0), (5, 1), (5, 0), (4, 1)].into_iter().cycle();
        let now = reports(&mut under_way, told.take(80).chain([(12, 0)]));
        assert!(known(&under_way, now) >= 11);
    }

    #[test]
    fn requests_that_are_found_were_in_the_hosts_figures_already() {
        let mut under_way = UnderWay::default();
        let own = own(Duration::from_secs(1), 8);
        under_way.told(&own.figures, 4, NOW);
        under_way.moved(
            Change {
                is_found: true,
                ..more(6)
            },
            NOW,
        );
        let newest = |under_way: &UnderWay| jobs(under_way.newest(Some(&own), 4, NOW));
        assert_eq!(newest(&under_way), Some((8, From::Callers)));
        under_way.moved(more(1), NOW);
        assert_eq!(newest(&under_way), Some((9, From::Callers)));
    }

    #[test]
    fn what_a_host_tells_beyond_callers_requests_is_smoothed() {
        let mut under_way = UnderWay::default();
        under_way.moved(more(5), NOW);
        for told in [5, 9, 1, 5] {
            under_way.told(&own(Duration::ZERO, told).figures, 4, NOW);
        }
        let old = own(Duration::from_secs(1), 5);
        assert_eq!(
            jobs(under_way.newest(Some(&old), 4, NOW)),
            Some((5, From::Callers))
        );
        // Somebody else sends 20 from now on.
        for _ in 0..50 {
            under_way.told(&own(Duration::ZERO, 25).figures, 4, NOW);
        }
        let old = own(Duration::from_secs(1), 25);
        assert_eq!(
            jobs(under_way.newest(Some(&old), 4, NOW)),
            Some((25, From::Callers))
        );
    }

    #[test]
    fn what_callers_claim_counts_until_the_host_is_asked_again() {
        let figures = own(Duration::from_secs(1), 6);
        let known = |under_way: &UnderWay| {
            let newest = under_way.newest(Some(&figures), 4, NOW);
            jobs(newest).map(|(jobs, _)| jobs)
        };
        for lie in [1_000_000, -1_000_000] {
            let mut under_way = UnderWay::default();
            under_way.moved(more(6), NOW);
            under_way.told(&figures.figures, 4, NOW);
            assert_eq!(known(&under_way), Some(6));
            under_way.moved(more(lie), NOW);
            assert_eq!(
                known(&under_way),
                Some(6_i64.saturating_add(lie).max(0) as u32)
            );
            under_way.told(&figures.figures, 4, NOW);
            let believed = known(&under_way).unwrap();
            assert!((0..=6 + FEW).contains(&believed), "{believed}");
            // It takes back its lie: the same the other way round.
            under_way.moved(more(-lie), NOW);
            under_way.told(&figures.figures, 4, NOW);
            let believed = known(&under_way).unwrap();
            assert!((0..=6 + FEW).contains(&believed), "{believed}");
        }
    }

    #[test]
    fn figures_that_are_newer_than_reports_stand() {
        let mut under_way = UnderWay::default();
        under_way.moved(more(5), NOW);
        let own = own(SPAN, 8);
        assert_eq!(
            jobs(under_way.newest(Some(&own), 4, NOW)),
            Some((8, From::Scrape))
        );
    }

    proptest! {
        #[test]
        fn whatever_is_claimed_what_a_host_told_stands_but_for_a_few(
            claims in prop::collection::vec((any::<i32>(), any::<u16>(), any::<bool>(), any::<u16>()), 1..20),
        ) {
            let mut under_way = UnderWay::default();
            for (by, ended, is_found, told) in claims {
                under_way.moved(Change { is_found, ended: ended.into(), ..more(by.into()) }, NOW);
                let told = own(Duration::from_secs(1), told.into());
                under_way.told(&told.figures, 4, NOW);
                let jobs = told.figures.in_progress.unwrap();
                let known = under_way.newest(Some(&told), 4, NOW).unwrap();
                let off = known.figures.in_progress.unwrap().abs_diff(jobs);
                prop_assert!(off <= jobs.max(FEW), "{} told, {} off", jobs, off);
            }
        }
    }
}
