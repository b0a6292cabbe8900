// SPDX-License-Identifier: Apache-2.0
//! The admission level of each host (DAGOR): demand from reports, overload from the host's figures.
//!
//! All hosts of a cluster step together, when the window is over or one host has seen its share of
//! requests. A host steps only with figures newer than its last step, or one bad measurement would count
//! twice; what it was asked for meanwhile waits for that step.

use std::collections::BTreeMap;
use std::time::Duration;

use weir_policy::dagor::{LevelController, Window};
use weir_policy::{Level, Rank};

use crate::config::Dagor;
use crate::state::host::Observed;

/// Requests by rank.
pub type Counts = BTreeMap<Rank, f64>;

/// One host's level and what it was asked for since its last step.
#[derive(Debug)]
pub struct HostLevel {
    controller: LevelController,
    demand: Counts,
    /// Requests that it got in the cluster's present window.
    requests: f64,
    stepped: Duration,
    measured: Option<Duration>,
}

impl HostLevel {
    /// A level that admits everything.
    pub fn new(dagor: &Dagor) -> Self {
        Self {
            controller: LevelController::new(dagor.params),
            demand: Counts::new(),
            requests: 0.0,
            stepped: Duration::ZERO,
            measured: None,
        }
    }

    /// The level.
    pub fn get(&self) -> Level {
        self.controller.level()
    }

    /// Changes how it moves.
    pub fn configure(&mut self, dagor: &Dagor) {
        self.controller.set_params(dagor.params);
    }

    /// Requests that the host got.
    pub fn got(&mut self, rank: Rank, count: f64) {
        self.requests += count;
        *self.demand.entry(rank).or_default() += count;
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
        let level = self.get();
        for (rank, count) in offered.iter().filter(|(rank, _)| !level.admits(**rank)) {
            *self.demand.entry(*rank).or_default() += count;
        }
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
        let Some(overloaded) = overloaded(observed, with.dagor) else {
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
}

/// What is the same for all hosts of a step.
#[derive(Clone, Copy, Debug)]
pub struct Step<'a> {
    /// How levels move.
    pub dagor: &'a Dagor,
    /// Figures older than this are not believed.
    pub stale_after: Duration,
}

/// Queuing delay where it is known, else queued jobs, else nothing.
fn overloaded(observed: &Observed, dagor: &Dagor) -> Option<bool> {
    let figures = &observed.figures;
    if let Some(delay) = figures.queuing_delay {
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
            params: Default::default(),
            window: Duration::from_secs(1),
            window_requests: 2000,
            queued_jobs: 100,
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
            reported: false,
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
        };
        level.step(&Counts::new(), observed, now, &with);
        level.get()
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
        let lowered = level.get();
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
