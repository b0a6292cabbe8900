// SPDX-License-Identifier: Apache-2.0
//! Slow, then fast; the time between follows the service's latency and the load.
//!
//! After Haque et al., *Exploiting heterogeneity for tail latency and energy efficiency*, MICRO 2017, as Medeiros,
//! *Profile-guided frequency scaling for search workloads*, section 2.3.3, sums it up: a feedback computes the time
//! after which a call moves to a fast core from the measured tail, the target and the load; long calls show
//! themselves by running long. Here the core becomes fast instead. The feedback is an integral: what the tail is
//! off the target moves the time, for calls at the load there is; other loads keep theirs.

use std::time::Duration;

use crate::frequency::{Choose, Frequency, Khz, Parameters, Wrong, online};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::{Nanos, Sensed};

/// How many loads are told apart.
const LOADS: usize = 5;

/// The target, and the frequencies on either side of the time that is learned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SlowToFast {
    /// The limit for the quantile of [`Tail`](crate::sensed::Tail). By default the second of Medeiros,
    /// chapter 4; so are the frequencies.
    pub target: Duration,
    /// No hot function runs on the core.
    pub idle: Frequency,
    /// One does.
    pub slow: Frequency,
    /// One has for the time that is learned.
    pub fast: Frequency,
    /// A tail that stays off the target by so much moves the time by as much in this time. Four times what a
    /// measurement looks back, or it swings. Ours, as is `stale`.
    pub settle: Duration,
    /// A measurement older than this is none, and without one calls are fast at once.
    pub stale: Duration,
}

impl Default for SlowToFast {
    fn default() -> Self {
        Self {
            target: Duration::from_secs(1),
            idle: Frequency::Absolute(Khz(1_000_000)),
            slow: Frequency::Absolute(Khz(2_000_000)),
            fast: Frequency::Absolute(Khz(2_600_000)),
            settle: Duration::from_secs(120),
            stale: Duration::from_secs(10),
        }
    }
}

impl Parameters for SlowToFast {
    fn check(&self, node: &Node) -> Result<(), Wrong> {
        if self.target.is_zero() {
            return Err(Wrong::new("target", "must not be 0"));
        }
        if self.settle.is_zero() {
            return Err(Wrong::new("settle", "must not be 0"));
        }
        self.idle.check("idle", node)?;
        self.slow.check("slow", node)?;
        self.fast.check("fast", node)
    }

    fn begin(&self, _: &Node) -> Box<dyn Choose> {
        Box::new(Learning {
            parameters: *self,
            thresholds: [0.0; LOADS],
            last: None,
        })
    }
}

#[derive(Debug)]
struct Learning {
    parameters: SlowToFast,
    /// In seconds, by the load.
    thresholds: [f64; LOADS],
    last: Option<Nanos>,
}

impl Learning {
    fn threshold(&mut self, sensed: &Sensed) -> Duration {
        let of = &self.parameters;
        let last = self.last.replace(sensed.now);
        let elapsed = last.map_or(Duration::ZERO, |last| sensed.now.since(last));
        let Some(tail) = sensed.fresh_tail(of.stale) else {
            return Duration::ZERO;
        };
        let load = ((sensed.load() * LOADS as f64) as usize).min(LOADS - 1);
        let threshold = &mut self.thresholds[load];
        let target = of.target.as_secs_f64();
        let left = target - tail.latency.as_secs_f64();
        let step = left * elapsed.as_secs_f64() / of.settle.as_secs_f64().max(1e-9);
        *threshold = (*threshold + step).clamp(0.0, target);
        Duration::from_secs_f64(*threshold)
    }
}

impl Choose for Learning {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        let threshold = self.threshold(sensed);
        for (_, range, seen, setting) in online(node, sensed, plan) {
            let (rung, frequency) = match seen.hot.longest(sensed.now) {
                None => (0, self.parameters.idle),
                Some(took) if took < threshold => (1, self.parameters.slow),
                Some(_) => (2, self.parameters.fast),
            };
            *setting = Setting {
                frequency: frequency.on(range),
                rung,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::Policy;
    use crate::frequency::tests::{NOW, cold, node};
    use crate::planner::Planner;
    use crate::sensed::Tail;

    /// For how long, in milliseconds, a call stays slow after so many seconds of a latency that is `fast` seconds and
    /// a share of that time.
    fn settles(fast: f64, share: f64, seconds: u64) -> u64 {
        let policy = Policy::SlowToFast(SlowToFast::default());
        let mut planner = Planner::new(node(1), policy, Duration::from_millis(50));
        let mut plan = Plan::default();
        let mut slow_for = 0;
        for second in 0..seconds {
            let now = Nanos(NOW.0 + second * 1_000_000_000);
            let latency = fast + share * slow_for as f64 / 1000.0;
            let mut slow = |took: u64| {
                let mut core = cold();
                core.hot.enter(0, Nanos(now.0 - took * 1_000_000));
                let tail = Tail {
                    latency: Duration::from_secs_f64(latency),
                    requests: 100,
                    at: now,
                };
                let sensed = Sensed {
                    now,
                    cores: vec![core],
                    tail: Some(tail),
                    ..Sensed::default()
                };
                planner.plan(&sensed, &mut plan);
                plan.cores[0].rung == 1
            };
            let times = (0..=100).map(|tens| tens * 10);
            slow_for = times.rev().find(|took| slow(*took)).unwrap_or(0);
        }
        slow_for
    }

    #[test]
    fn the_time_settles_where_the_latency_is_the_target() {
        let settled = settles(0.6, 1.0, 600);
        assert!(settled.abs_diff(400) <= 20, "{settled}");
    }

    #[test]
    fn a_target_that_cannot_be_met_leaves_no_time() {
        assert_eq!(settles(1.5, 1.0, 600), 0);
    }

    #[test]
    fn a_target_that_cannot_be_missed_leaves_all_of_it() {
        assert_eq!(settles(0.1, 0.1, 600), 990);
    }
}
