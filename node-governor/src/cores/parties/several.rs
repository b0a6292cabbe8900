// SPDX-License-Identifier: Apache-2.0
//! Several services on one node, each with a target of its own: cores alone.
//!
//! ```text
//!  the tightest service: a core of the jobs' ──> where they have none: of the service with most slack
//!  none is tight: the loosest gives one to the jobs; is any tight by that: it goes back, and no more for 10 s
//! ```
//! The rule of [`super`] for more than one service (PARTIES, `makeDecision` and `adjustCore` of the authors' controller).
//! [`super::services`] goes by it, and the model. Otherwise than there a service that is tight itself gives none: two
//! that are overloaded would pass a core to and fro.

use std::time::Duration;

use super::readings::Readings;
use crate::sensed::Nanos;

/// Cores and times, of all services alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Each service's, always.
    pub least: usize,
    /// No service has more.
    pub most: usize,
    /// Less slack than this: a core more.
    pub tight: f64,
    /// More slack than this: a core less.
    pub loose: f64,
    /// Between two decisions.
    pub settle: Duration,
    /// A service gives no core for so long after one that went back.
    pub rest: Duration,
}

impl Default for Params {
    fn default() -> Self {
        let one = super::Params::default();
        Self {
            least: 1,
            most: usize::MAX,
            tight: one.tight,
            loose: one.loose,
            settle: one.settle,
            rest: one.rest,
        }
    }
}

/// Who has how many cores.
#[derive(Debug)]
pub struct Several {
    params: Params,
    services: Vec<One>,
    /// The jobs'.
    free: usize,
    /// Who gave one last.
    gave: Option<usize>,
    decided: Nanos,
}

#[derive(Debug, Default)]
struct One {
    cores: usize,
    readings: Readings,
    rests_until: Nanos,
}

impl Several {
    /// So many services on a node with so many cores, which they share evenly at first; no more than it has cores for.
    pub fn new(params: Params, services: usize, cores: usize) -> Self {
        let mut several = Self {
            free: cores,
            services: (0..services).map(|_| One::default()).collect(),
            params,
            gave: None,
            decided: Nanos::default(),
        };
        several.share_evenly(Nanos::default());
        several
    }

    /// As at first: nothing that came of it counts any more.
    pub fn share_evenly(&mut self, now: Nanos) {
        let services = self.services.len();
        let cores = self.free + self.cores().sum::<usize>();
        let params = &self.params;
        let each = (cores / services.max(1)).clamp(params.least, params.most.max(params.least));
        for one in &mut self.services {
            (one.cores, one.readings) = (each, Readings::default());
        }
        self.free = cores.saturating_sub(each * services);
        (self.gave, self.decided) = (None, now);
    }

    /// Cores of each service.
    pub fn cores(&self) -> impl Iterator<Item = usize> + '_ {
        self.services.iter().map(|one| one.cores)
    }

    /// The jobs'.
    pub fn free(&self) -> usize {
        self.free
    }

    /// The slack of each service now; none where nothing is known of it, which then keeps what it has.
    pub fn see(&mut self, now: Nanos, slacks: &[Option<f64>]) {
        for (one, slack) in self.services.iter_mut().zip(slacks) {
            if let Some(slack) = slack {
                one.readings.add(*slack);
            }
        }
        if now.since(self.decided) >= self.params.settle {
            self.decided = now;
            self.decide(now);
        }
    }

    fn decide(&mut self, now: Nanos) {
        let taken = self.services.iter_mut().map(|one| one.readings.take());
        let readings: Vec<Option<(f64, f64)>> = taken.collect();
        let params = &self.params;
        let mean = |service: &usize| readings[*service].map_or(f64::NAN, |(_, mean)| mean);
        let of = |is: &dyn Fn(f64, f64) -> bool| -> Vec<usize> {
            let is =
                |service: &usize| readings[*service].is_some_and(|(last, mean)| is(last, mean));
            (0..readings.len()).filter(is).collect()
        };
        let tight = of(&|last, mean| last.max(mean) < params.tight);
        let loose = of(&|last, mean| last.min(mean) > params.loose);
        if let Some(gave) = self.gave.take()
            && !tight.is_empty()
            && self.free > 0
        {
            self.free -= 1;
            self.services[gave].cores += 1;
            self.services[gave].rests_until = now.after(params.rest);
            return;
        }
        let by_slack = |one: &usize, two: &usize| mean(one).total_cmp(&mean(two));
        let grows = |service: &usize| self.services[*service].cores < params.most;
        if let Some(needs) = tight.iter().copied().filter(grows).min_by(by_slack) {
            let gives = |service: &usize| {
                self.services[*service].cores > params.least
                    && !tight.contains(service)
                    && !mean(service).is_nan()
            };
            let from = match self.free {
                0 => (0..readings.len()).filter(gives).max_by(by_slack),
                _ => None,
            };
            match from {
                Some(from) => self.services[from].cores -= 1,
                None if self.free > 0 => self.free -= 1,
                None => return,
            }
            self.services[needs].cores += 1;
            return;
        }
        let gives = |service: &usize| {
            let one = &self.services[*service];
            one.cores > params.least && now >= one.rests_until
        };
        if !tight.is_empty() {
            return;
        }
        if let Some(gives) = loose.into_iter().filter(gives).max_by(by_slack) {
            self.services[gives].cores -= 1;
            self.free += 1;
            self.gave = Some(gives);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Node(Several, u64);

    impl Node {
        /// Two services on six cores.
        fn new() -> Self {
            Self(Several::new(Params::default(), 2, 6), 0)
        }

        /// Cores of both and the jobs' after so many decisions.
        fn decide(&mut self, times: u64, slacks: [f64; 2]) -> [usize; 3] {
            for _ in 0..5 * times {
                self.1 += 100;
                self.0.see(Nanos(self.1 * 1_000_000), &slacks.map(Some));
            }
            let mut cores = self.0.cores();
            [cores.next().unwrap(), cores.next().unwrap(), self.0.free()]
        }
    }

    #[test]
    fn the_loosest_gives_to_the_jobs_until_each_has_its_least() {
        let mut node = Node::new();
        assert_eq!(node.decide(1, [0.5, 0.6]), [3, 2, 1]);
        assert_eq!(node.decide(1, [0.5, 0.4]), [2, 2, 2]);
        assert_eq!(node.decide(9, [0.5, 0.4]), [1, 1, 4]);
    }

    #[test]
    fn the_tightest_has_a_core_of_the_jobs_and_then_of_the_service_with_slack() {
        let mut node = Node::new();
        node.decide(2, [0.1, 0.5]);
        assert_eq!(node.decide(1, [0.1, 0.1]), [3, 1, 2]);
        assert_eq!(node.decide(1, [-0.1, 0.0]), [4, 1, 1]);
        assert_eq!(node.decide(1, [0.1, 0.0]), [4, 2, 0]);
        assert_eq!(node.decide(1, [0.1, -0.2]), [3, 3, 0]);
        // None that is tight gives.
        assert_eq!(node.decide(3, [0.0, -0.2]), [3, 3, 0]);
    }

    #[test]
    fn a_core_that_was_needed_goes_back_and_none_is_given_for_a_while() {
        let mut node = Node::new();
        assert_eq!(node.decide(1, [0.5, 0.1]), [2, 3, 1]);
        assert_eq!(node.decide(1, [0.0, 0.1]), [3, 3, 0]);
        assert_eq!(node.decide(19, [0.5, 0.1]), [3, 3, 0]);
        assert_eq!(node.decide(1, [0.5, 0.1]), [2, 3, 1]);
    }

    #[test]
    fn of_an_unknown_service_nothing_is_taken() {
        let mut node = Node::new();
        for at in 1..50 {
            node.0.see(Nanos(at * 100_000_000), &[None, Some(0.1)]);
        }
        assert_eq!(node.0.cores().collect::<Vec<_>>(), [3, 3]);
    }
}
