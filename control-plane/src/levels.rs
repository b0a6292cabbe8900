// SPDX-License-Identifier: Apache-2.0
//! Admission levels (DAGOR): demand from reports, overload from the hosts' figures.
//!
//! ```text
//!  control: steady ───────────────> steady.rs: one level for the cluster, lower at a host that is far behind
//!           paper, stalled_jobs ──> here: a level for each host
//! ```
//! All hosts of a cluster step together, when the window is over or one host has seen its share of
//! requests. A host steps only with figures newer than its last step, or one bad measurement would count
//! twice; what it was asked for meanwhile waits for that step.

mod flow;
pub mod steady;

use std::collections::BTreeMap;
use std::time::Duration;

use weir_policy::dagor::{LevelController, Window};
use weir_policy::{Level, Rank};

use crate::config::{Control, Dagor};
use crate::state::host::Observed;
use flow::Flow;

/// Requests by rank.
pub type Counts = BTreeMap<Rank, f64>;

/// One host's level and what it was asked for since its last step.
#[derive(Debug)]
pub struct HostLevel {
    controller: LevelController,
    /// Of [`Control::Steady`]: what the host passes on because it is behind the others.
    passing: weir_policy::steady::Controller,
    flow: Flow,
    demand: Counts,
    /// Requests that it got in the cluster's present window.
    requests: f64,
    /// Requests that it did not take since its last step.
    unconnected: u64,
    stepped: Duration,
    measured: Option<Duration>,
}

impl HostLevel {
    /// A level that admits everything.
    pub fn new(dagor: &Dagor) -> Self {
        Self {
            controller: LevelController::new(dagor.params),
            passing: weir_policy::steady::Controller::new(steady::passing(dagor)),
            flow: Flow::default(),
            demand: Counts::new(),
            requests: 0.0,
            unconnected: 0,
            stepped: Duration::ZERO,
            measured: None,
        }
    }

    /// The same, going on from the level that somebody else came to.
    pub fn starting_at(level: Level, dagor: &Dagor) -> Self {
        let passing = steady::passing(dagor);
        Self {
            controller: LevelController::starting_at(level, dagor.params),
            passing: weir_policy::steady::Controller::starting_at(level, passing),
            ..Self::new(dagor)
        }
    }

    /// The level.
    pub fn get(&self, control: Control) -> Level {
        match control {
            Control::Steady => self.passing.level(),
            Control::Paper | Control::StalledJobs => self.controller.level(),
        }
    }

    /// Changes how it moves.
    pub fn configure(&mut self, dagor: &Dagor) {
        self.controller.set_params(dagor.params);
        self.passing.set_params(steady::passing(dagor));
    }

    /// Requests that the host got.
    pub fn got(&mut self, rank: Rank, count: f64) {
        self.requests += count;
        self.flow.got(count);
        *self.demand.entry(rank).or_default() += count;
    }

    /// Requests that the host did not take: an early sign of overload (document 001, section 12.2).
    pub fn not_taken(&mut self, count: u64) {
        self.unconnected += count;
        self.flow.got(-(count as f64));
    }

    /// How many requests it got in the present window.
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
        now: Duration,
        with: &Step<'_>,
    ) {
        self.requests = 0.0;
        let level = self.controller.level();
        self.wanted(offered, level);
        let Some(observed) = observed
            .filter(|observed| now.saturating_sub(observed.overload_at()) <= with.stale_after)
        else {
            *self = Self {
                stepped: now,
                ..Self::new(with.dagor)
            };
            return;
        };
        if self
            .measured
            .is_some_and(|measured| observed.overload_at() <= measured)
        {
            return;
        }
        let refused = std::mem::take(&mut self.unconnected) > 0;
        let overloaded = overloaded(observed, with.dagor);
        let Some(overloaded) = overloaded.map(|overloaded| overloaded || refused) else {
            self.demand.clear();
            return;
        };
        let window = Window {
            length: now.saturating_sub(self.stepped),
            demand: std::mem::take(&mut self.demand).into_iter().collect(),
            overloaded: Some(overloaded),
        };
        self.controller.step(&window);
        self.stepped = now;
        self.measured = Some(observed.overload_at());
    }

    /// Adds this host's share of what the cluster was asked for at the ranks that `level` refuses.
    fn wanted(&mut self, offered: &Counts, level: Level) {
        for (rank, count) in offered.iter().filter(|(rank, _)| !level.admits(**rank)) {
            *self.demand.entry(*rank).or_default() += count;
        }
    }
}

/// What is the same for all hosts of a step.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// How levels move.
    pub dagor: &'a Dagor,
    /// Figures older than this are not believed.
    pub stale_after: Duration,
    /// Of [`Control::Steady`]: whether hosts pass on what they cannot do.
    pub passes_on: bool,
}

impl Step<'_> {
    fn is_fresh(&self, observed: &Observed, now: Duration) -> bool {
        now.saturating_sub(observed.at) <= self.stale_after
    }
}

/// Queuing delay where it is known and counts, else queued jobs, else nothing.
fn overloaded(observed: &Observed, dagor: &Dagor) -> Option<bool> {
    let figures = &observed.figures;
    if let Some(delay) = figures.queuing_delay
        && dagor.control != Control::StalledJobs
    {
        return Some(dagor.params.is_overloaded(delay));
    }
    let queued = figures.queued.as_ref()?;
    let queued: u64 = queued.iter().map(|jobs| u64::from(*jobs)).sum();
    Some(queued > u64::from(dagor.queued_jobs))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sources::scrape::Figures;

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
            from: crate::state::host::From::Scrape,
        }
    }

    fn step(level: &mut HostLevel, second: u64, observed: Option<&Observed>) -> Level {
        for class in 0..32 {
            level.got(Rank::new(class, 64), 10.0);
        }
        let now = Duration::from_secs(second);
        let with = Step {
            dagor: &dagor(),
            stale_after: Duration::from_secs(5),
            passes_on: true,
        };
        level.step(&Counts::new(), observed, now, &with);
        level.get(Control::Paper)
    }

    #[test]
    fn queuing_delay_over_the_threshold_lowers_the_level_and_below_raises_it() {
        let mut level = HostLevel::new(&dagor());
        let mut last = Level::ALL;
        for second in 1..10 {
            let now = step(
                &mut level,
                second,
                Some(&observed(Duration::from_secs(second), Some(30), Some(0))),
            );
            assert!(now < last);
            last = now;
        }
        for second in 10..13 {
            let now = step(
                &mut level,
                second,
                Some(&observed(Duration::from_secs(second), Some(10), Some(1000))),
            );
            assert!(now > last, "the delay counts, not the queue");
            last = now;
        }
    }

    #[test]
    fn stalled_jobs_count_where_no_queuing_delay_is_known() {
        let mut level = HostLevel::new(&dagor());
        assert_eq!(
            step(
                &mut level,
                1,
                Some(&observed(Duration::from_secs(1), None, Some(100)))
            ),
            Level::ALL
        );
        assert!(
            step(
                &mut level,
                2,
                Some(&observed(Duration::from_secs(2), None, Some(101)))
            ) < Level::ALL
        );
    }

    #[test]
    fn a_host_that_does_not_take_connections_counts_as_overloaded_once() {
        let mut level = HostLevel::new(&dagor());
        level.not_taken(1);
        let calm = |second| observed(Duration::from_secs(second), Some(0), Some(0));
        let lowered = step(&mut level, 1, Some(&calm(1)));
        assert!(lowered < Level::ALL);
        assert!(step(&mut level, 2, Some(&calm(2))) > lowered);
    }

    #[test]
    fn one_measurement_moves_the_level_once() {
        let mut level = HostLevel::new(&dagor());
        let bad = observed(Duration::from_secs(1), Some(30), None);
        let first = step(&mut level, 1, Some(&bad));
        assert!(first < Level::ALL);
        assert_eq!(step(&mut level, 2, Some(&bad)), first);
    }

    #[test]
    fn lost_figures_open_the_level() {
        let mut level = HostLevel::new(&dagor());
        let bad = observed(Duration::from_secs(1), Some(30), None);
        step(&mut level, 1, Some(&bad));
        assert!(step(&mut level, 6, Some(&bad)) < Level::ALL);
        assert_eq!(step(&mut level, 7, Some(&bad)), Level::ALL);
        assert_eq!(step(&mut level, 8, None), Level::ALL);
    }

    #[test]
    fn figures_that_say_nothing_of_the_queue_change_nothing() {
        let mut level = HostLevel::new(&dagor());
        step(
            &mut level,
            1,
            Some(&observed(Duration::from_secs(1), Some(30), None)),
        );
        let lowered = level.get(Control::Paper);
        assert_eq!(
            step(
                &mut level,
                2,
                Some(&observed(Duration::from_secs(2), None, None))
            ),
            lowered
        );
    }
}
