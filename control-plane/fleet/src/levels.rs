// SPDX-License-Identifier: Apache-2.0
//! Admission levels (DAGOR): demand from reports, overload from the hosts' figures.
//!
//! ```text
//!  control: steady ───────────────> steady.rs: one level for the cluster, lower at a host that is far behind
//!           paper, stalled_jobs ──> here: a level for each host
//! ```
//! A level falls on evidence of a queue alone. What proxies report says how much a step sheds, never whether
//! ([`claims`]); figures of the queue are the host's own, where it is asked ([`witnesses`]); and hosts that were idle
//! for two windows admit everything.
//!
//! All hosts of a cluster step together, when the window is over or one host has seen its share of
//! requests. A host steps only with figures newer than its last step, or one bad measurement would count
//! twice; what it was asked for meanwhile waits for that step.

pub mod claims;
mod cores;
mod flow;
pub mod resumption;
pub mod steady;
pub mod witnesses;

use std::collections::BTreeMap;
use std::time::Duration;

use weir_policy::dagor::{self, Window};
use weir_policy::{HostId, Level, MovingLevel, Rank};

use crate::observed::Observed;
use crate::settings::{Control, Dagor};
use flow::Flow;
use witnesses::Witnesses;

/// Requests by rank.
pub type Counts = BTreeMap<Rank, f64>;

/// One host's level and what it was asked for since its last step. By default it admits everything.
#[derive(Debug, Default)]
pub struct HostLevel {
    /// Of the other controls.
    level: MovingLevel,
    /// Of [`Control::Steady`]: what the host passes on because it is behind the others.
    passing: weir_policy::steady::Controller,
    /// That it was come to on.
    cores: cores::Standing,
    flow: Flow,
    demand: Counts,
    /// Requests that proxies say it got in the cluster's present window.
    requests: f64,
    /// Requests that it got since its last step, as far as that is confirmed, and those of them that it did not take.
    sent: f64,
    refused: f64,
    /// Jobs a second that it counted itself, and until when.
    counted: Option<(f64, Duration)>,
    witnesses: Witnesses,
    stepped: Duration,
    measured: Option<Duration>,
    /// Of [`Control::Paper`]: whether its queue drains.
    standing: dagor::Standing,
}

/// A host at the end of a window.
#[derive(Debug)]
pub struct Seen<'a> {
    /// Who.
    pub id: HostId,
    /// Its level.
    pub level: &'a mut HostLevel,
    /// The figures that its level moves on.
    pub figures: Option<Observed>,
    /// Nothing waits there, and cores are free.
    pub idle: bool,
    /// Thousandths of a core that it has; 0 where that is not known.
    pub millicores: u32,
}

impl HostLevel {
    /// Goes on from the level that somebody else came to.
    pub fn starting_at(level: Level) -> Self {
        Self {
            level: MovingLevel::starting_at(level),
            passing: weir_policy::steady::Controller::starting_at(level),
            ..Self::default()
        }
    }

    /// The level.
    pub fn get(&self, control: Control) -> Level {
        match control {
            Control::Steady => self.passing.level(),
            Control::Paper | Control::StalledJobs => self.level.get(),
        }
    }

    /// A proxy says that the host got so many requests.
    pub fn claimed(&mut self, requests: f64) {
        self.requests += requests;
        self.flow.got(requests);
    }

    /// The host counted so many jobs itself in the time before `at`.
    pub fn counted(&mut self, jobs: f64, within: Duration, at: Duration) {
        self.flow.counted(jobs);
        self.counted = Some((jobs / within.as_secs_f64().max(1e-3), at));
    }

    /// Jobs a second that the host counted itself, if that is not older than two windows.
    pub fn count(&self, now: Duration, window: Duration) -> Option<f64> {
        let lately = |(_, at): &(f64, Duration)| now.saturating_sub(*at) <= 2 * window;
        self.counted.filter(lately).map(|(rate, _)| rate)
    }

    /// Figures came; `proxy` is a hash of the name of who reported them.
    pub fn hear(&mut self, proxy: u64, observed: &Observed) {
        self.witnesses.hear(proxy, observed);
    }

    /// The figures that its level moves on.
    pub fn believed(&self, now: Duration, window: Duration) -> Option<Observed> {
        self.witnesses.believed(now, window)
    }

    /// The confirmed part of a window: the requests that the host got, and how many of them it did not take.
    pub fn confirm(&mut self, sent: Counts, refused: f64) {
        for (rank, count) in sent {
            self.sent += count;
            *self.demand.entry(rank).or_default() += count;
        }
        self.refused += refused;
        self.flow.got(-refused);
    }

    /// The share of its requests that it did not take.
    fn refused(&self) -> f64 {
        match self.sent > 0.0 {
            true => (self.refused / self.sent).min(1.0),
            false => 0.0,
        }
    }

    /// How many requests proxies say it got in the present window.
    pub fn requests(&self) -> f64 {
        self.requests
    }

    /// Ends a window. `offered` is this host's share of what the whole cluster was asked for: of the ranks
    /// that it refuses this is all it can know of the demand, whoever served them meanwhile.
    ///
    /// Stale figures open the level: not to know is not to be overloaded.
    pub fn step(
        &mut self,
        offered: &Counts,
        observed: Option<&Observed>,
        idle: bool,
        now: Duration,
        with: &Step<'_>,
    ) {
        self.requests = 0.0;
        let level = self.level.get();
        self.wanted(offered, level);
        let Some(observed) = observed
            .filter(|observed| now.saturating_sub(observed.overload_at()) <= with.stale_after)
        else {
            *self = self.opened(now);
            return;
        };
        if self
            .measured
            .is_some_and(|measured| observed.overload_at() <= measured)
        {
            return;
        }
        let refused = self.refused();
        (self.sent, self.refused) = (0.0, 0.0);
        let paper = with.dagor.control == Control::Paper;
        let overloaded = overload(observed, with.dagor).map(|overload| {
            let too_long = overload > 1.0 && !(paper && with.spare);
            let standing = self.standing.is_overload(too_long) || !paper && too_long;
            standing || dagor::is_early_sign(refused, overload >= AGREES)
        });
        let window = Window {
            length: now.saturating_sub(self.stepped),
            demand: std::mem::take(&mut self.demand).into_iter().collect(),
            overloaded,
            eased: paper,
            idle,
        };
        dagor::step(&mut self.level, &with.dagor.params, &window);
        self.stepped = now;
        self.measured = Some(observed.overload_at());
    }

    /// One that admits everything, of the same host.
    fn opened(&mut self, now: Duration) -> Self {
        Self {
            witnesses: std::mem::take(&mut self.witnesses),
            counted: self.counted,
            stepped: now,
            ..Self::default()
        }
    }

    /// Adds this host's share of what the cluster was asked for at the ranks that `level` refuses.
    fn wanted(&mut self, offered: &Counts, level: Level) {
        for (rank, count) in offered.iter().filter(|(rank, _)| !level.admits(**rank)) {
            *self.demand.entry(*rank).or_default() += count;
        }
    }
}

/// The part of a step that is the same for all hosts.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// How levels move.
    pub dagor: &'a Dagor,
    /// Figures older than this are not believed.
    pub stale_after: Duration,
    /// Of [`Control::Steady`]: whether hosts pass on what they cannot do.
    pub passes_on: bool,
    /// Of [`Control::Paper`]: a host is idle that could do what others refuse, and requests are sent to idle hosts.
    pub spare: bool,
}

impl Seen<'_> {
    /// Whether it is idle and gets requests. One that gets none may be idle because nobody reaches it.
    pub fn is_spare(&self) -> bool {
        self.idle && self.level.sent > 0.0
    }
}

impl Step<'_> {
    fn is_fresh(&self, observed: &Observed, now: Duration) -> bool {
        now.saturating_sub(observed.at) <= self.stale_after
    }
}

/// Of the threshold: from here on refused connections are believed to be a full host's. As `low` to `target` of
/// [`Control::Steady`].
const AGREES: f64 = 0.25;
/// Of the same: a queuing delay below is none.
const NEGLIGIBLE: f64 = 0.1;

/// How much of what is overload there is: queuing delay where it is known and counts, else queued jobs, else nothing.
fn overload(observed: &Observed, dagor: &Dagor) -> Option<f64> {
    let figures = &observed.figures;
    if let Some(delay) = figures.delay_of_now()
        && dagor.control != Control::StalledJobs
    {
        return Some(delay.as_secs_f64() / dagor.params.threshold.as_secs_f64());
    }
    Some(queued(observed)? as f64 / f64::from(dagor.queued_jobs))
}

fn queued(observed: &Observed) -> Option<u64> {
    let queued = observed.figures.queued.as_ref()?;
    Some(queued.iter().map(|jobs| u64::from(*jobs)).sum())
}

/// Whether nothing waits at a host and cores are free, as far as its figures tell: of `millicores`, 0 where that is not
/// known.
pub fn is_idle(observed: &Observed, millicores: u32, dagor: &Dagor) -> bool {
    let figures = &observed.figures;
    let waits = match dagor.control {
        Control::Steady => dagor.steady.low,
        Control::Paper | Control::StalledJobs => dagor.params.threshold,
    };
    let negligible = waits.mul_f64(NEGLIGIBLE);
    let short = |delay: Duration| delay <= negligible;
    let empty = match (queued(observed), figures.in_progress) {
        (Some(queued), _) => queued == 0,
        (None, Some(jobs)) => jobs == 0,
        (None, None) => false,
    };
    let busy = figures.busy_cores.or(figures.in_progress).unwrap_or(0);
    let free = millicores == 0 || u64::from(busy) * 1000 < u64::from(millicores);
    empty && free && figures.delay_of_now().is_none_or(short)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Figures;

    fn dagor() -> Dagor {
        Dagor {
            control: Control::Paper,
            ..Dagor::default()
        }
    }

    fn observed(at: Duration, delay_ms: Option<u64>, queued: Option<u32>) -> Observed {
        let queuing_delay = delay_ms.map(Duration::from_millis);
        let figures = Figures {
            queued: queued.map(|jobs| vec![jobs]),
            queuing_delay,
            ..Figures::default()
        };
        Observed {
            figures,
            at,
            delay_at: at,
            from: crate::observed::From::Scrape,
        }
    }

    fn step(level: &mut HostLevel, second: u64, observed: Option<&Observed>) -> Level {
        step_beside(level, second, observed, false)
    }

    fn step_beside(
        level: &mut HostLevel,
        second: u64,
        observed: Option<&Observed>,
        spare: bool,
    ) -> Level {
        let got = (0..32).map(|class| (Rank::new(class, 64), 10.0));
        level.confirm(got.collect(), 0.0);
        let now = Duration::from_secs(second);
        let with = Step {
            dagor: &dagor(),
            stale_after: Duration::from_secs(5),
            passes_on: true,
            spare,
        };
        level.step(&Counts::new(), observed, false, now, &with);
        level.get(Control::Paper)
    }

    /// The last of three windows with too long a queue.
    fn lowered(level: &mut HostLevel) -> (Observed, Level) {
        for second in 1..3 {
            let bad = observed(Duration::from_secs(second), Some(30), None);
            assert_eq!(step(level, second, Some(&bad)), Level::ALL);
        }
        let bad = observed(Duration::from_secs(3), Some(30), None);
        let lowered = step(level, 3, Some(&bad));
        assert!(lowered < Level::ALL);
        (bad, lowered)
    }

    #[test]
    fn queuing_delay_that_stays_over_the_threshold_lowers_the_level_and_below_opens_it() {
        let mut level = HostLevel::default();
        let (_, mut last) = lowered(&mut level);
        for second in 4..10 {
            let bad = observed(Duration::from_secs(second), Some(30), Some(0));
            let now = step(&mut level, second, Some(&bad));
            assert!(now < last);
            last = now;
        }
        let calm = observed(Duration::from_secs(10), Some(10), Some(1000));
        let now = step(&mut level, 10, Some(&calm));
        assert_eq!(now, Level::ALL, "the delay counts, not the queue");
    }

    #[test]
    fn beside_an_idle_host_nobody_is_refused() {
        let mut level = HostLevel::default();
        lowered(&mut level);
        for second in 4..10 {
            let bad = observed(Duration::from_secs(second), Some(3000), None);
            let now = step_beside(&mut level, second, Some(&bad), true);
            assert_eq!(now, Level::ALL);
        }
    }

    #[test]
    fn an_idle_host_that_gets_nothing_is_no_help() {
        let mut level = HostLevel::default();
        for (sent, spare) in [(0.0, false), (1.0, true)] {
            level.confirm(Counts::from([(Rank::new(0, 0), sent)]), 0.0);
            for idle in [false, true] {
                let seen = Seen {
                    id: HostId::of("10.0.0.1:80"),
                    level: &mut level,
                    figures: None,
                    idle,
                    millicores: 0,
                };
                assert_eq!(seen.is_spare(), idle && spare);
            }
        }
    }

    #[test]
    fn stalled_jobs_count_where_no_queuing_delay_is_known() {
        let stalled = |jobs| {
            let mut level = HostLevel::default();
            for second in 1..3 {
                let full = observed(Duration::from_secs(second), None, Some(jobs));
                step(&mut level, second, Some(&full));
            }
            step(
                &mut level,
                3,
                Some(&observed(Duration::from_secs(3), None, Some(jobs))),
            )
        };
        assert_eq!(stalled(100), Level::ALL);
        assert!(stalled(101) < Level::ALL);
    }

    #[test]
    fn a_host_that_does_not_take_connections_counts_as_overloaded_where_a_queue_agrees() {
        for (delay_ms, refused, lowers) in [(6, 32.0, true), (0, 320.0, false), (6, 16.0, false)] {
            let mut level = HostLevel::default();
            level.confirm(Counts::new(), refused);
            let calm = observed(Duration::from_secs(1), Some(delay_ms), Some(0));
            let lowered = step(&mut level, 1, Some(&calm));
            assert_eq!(
                lowered < Level::ALL,
                lowers,
                "{delay_ms} ms, {refused} of 320"
            );
            let calm = observed(Duration::from_secs(2), Some(delay_ms), Some(0));
            assert!(
                step(&mut level, 2, Some(&calm)) > lowered || !lowers,
                "once"
            );
        }
    }

    #[test]
    fn a_host_is_idle_where_nothing_waits_and_cores_are_free() {
        let now = Duration::from_secs(1);
        let idle = |busy, millicores, delay, queued| {
            let mut observed = observed(now, delay, queued);
            observed.figures.in_progress = busy;
            is_idle(&observed, millicores, &dagor())
        };
        assert!(idle(Some(3), 4000, Some(0), Some(0)));
        assert!(!idle(Some(4), 4000, Some(0), Some(0)), "no core is free");
        assert!(
            idle(Some(400), 0, None, Some(0)),
            "nobody knows how many there are"
        );
        assert!(!idle(Some(3), 4000, Some(3), Some(0)), "something waited");
        assert!(!idle(Some(3), 4000, Some(0), Some(1)));
        assert!(!idle(Some(3), 0, None, None) && idle(Some(0), 0, None, None));
        assert!(
            !idle(None, 0, Some(0), None),
            "not to know is not to be idle"
        );
    }

    #[test]
    fn one_measurement_moves_the_level_once() {
        let mut level = HostLevel::default();
        let (bad, first) = lowered(&mut level);
        assert_eq!(step(&mut level, 4, Some(&bad)), first);
    }

    #[test]
    fn lost_figures_open_the_level() {
        let mut level = HostLevel::default();
        let (bad, _) = lowered(&mut level);
        assert!(step(&mut level, 8, Some(&bad)) < Level::ALL);
        assert_eq!(step(&mut level, 9, Some(&bad)), Level::ALL);
        assert_eq!(step(&mut level, 10, None), Level::ALL);
    }

    #[test]
    fn figures_that_say_nothing_of_the_queue_change_nothing() {
        let mut level = HostLevel::default();
        let (_, lowered) = lowered(&mut level);
        let silent = observed(Duration::from_secs(4), None, None);
        assert_eq!(step(&mut level, 4, Some(&silent)), lowered);
    }
}
