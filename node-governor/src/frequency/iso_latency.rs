// SPDX-License-Identifier: Apache-2.0
//! All cores alike, just fast enough for the service's latency.
//!
//! Pegasus: Lo et al., *Towards energy proportionality for large-scale latency-critical workloads*, ISCA 2014. Its
//! rule for search, with its figures: far over the target, all the power there is; over it, 7 % more each second;
//! within 15 % below it, nothing; below that, 1 % less each second, and 3 % where 40 % is left. When the average over
//! a longer time is over the target: all the power, and hands off for five minutes. Pegasus limits a socket's power
//! by RAPL; here power is taken to grow with the cube of the frequency, so that a share `p` of it is `p^(1/3)` of
//! the highest frequency.

use std::time::Duration;

use crate::frequency::average::Average;
use crate::frequency::{Choose, Khz, Parameters, Wrong, online};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::{Nanos, Sensed};

/// The target; the rest is the paper's unless it says otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct IsoLatency {
    /// The limit for the quantile of [`Tail`](crate::sensed::Tail). By default the second of Medeiros,
    /// chapter 4.
    pub target: Duration,
    /// Over this multiple of the target: all the power.
    pub panic: f64,
    /// Below this share of the target there is power to give back.
    pub slack: f64,
    /// Below this share there is much.
    pub much_slack: f64,
    /// Of all the power, each second, over the target.
    pub raise: f64,
    /// Each second, with slack.
    pub lower: f64,
    /// Each second, with much slack.
    pub lower_fast: f64,
    /// The longer time that the average is over. Ours.
    pub average: Duration,
    /// How long all the power is kept when that is over the target.
    pub hold: Duration,
    /// A measurement older than this is none, and without one there is all the power. Ours.
    pub stale: Duration,
}

impl Default for IsoLatency {
    fn default() -> Self {
        Self {
            target: Duration::from_secs(1),
            panic: 1.35,
            slack: 0.85,
            much_slack: 0.6,
            raise: 0.07,
            lower: 0.01,
            lower_fast: 0.03,
            average: Duration::from_secs(30),
            hold: Duration::from_secs(300),
            stale: Duration::from_secs(10),
        }
    }
}

impl Parameters for IsoLatency {
    fn check(&self, _: &Node) -> Result<(), Wrong> {
        let wrong = |field, reason| Err(Wrong::new(field, reason));
        if self.target.is_zero() {
            return wrong("target", "must not be 0");
        }
        if self.average.is_zero() {
            return wrong("average", "must not be 0");
        }
        if !(self.panic >= 1.0 && self.panic.is_finite()) {
            return wrong("panic", "must be at least 1");
        }
        if !(self.slack > 0.0 && self.slack <= 1.0) {
            return wrong("slack", "must be more than 0 and at most 1");
        }
        if !(self.much_slack >= 0.0 && self.much_slack <= self.slack) {
            return wrong("much_slack", "must be from 0 to slack");
        }
        let rates = [
            ("raise", self.raise),
            ("lower", self.lower),
            ("lower_fast", self.lower_fast),
        ];
        for (field, rate) in rates {
            if !(rate > 0.0 && rate <= 1.0) {
                return wrong(field, "must be more than 0 and at most 1");
            }
        }
        Ok(())
    }

    fn begin(&self, _: &Node) -> Box<dyn Choose> {
        Box::new(Limiting {
            parameters: *self,
            power: 1.0,
            average: Average::new(self.average),
            hold_until: Nanos(0),
            last: None,
        })
    }
}

#[derive(Debug)]
struct Limiting {
    parameters: IsoLatency,
    /// Share of all the power, 0 to 1.
    power: f64,
    /// Of the measured latency as a multiple of the target.
    average: Average,
    hold_until: Nanos,
    last: Option<Nanos>,
}

impl Limiting {
    fn limit(&mut self, sensed: &Sensed) {
        let of = &self.parameters;
        let last = self.last.replace(sensed.now);
        let elapsed = last.map_or(Duration::ZERO, |last| sensed.now.since(last));
        let Some(tail) = sensed.fresh_tail(of.stale) else {
            self.power = 1.0;
            return;
        };
        let ratio = tail.latency.div_duration_f64(of.target);
        let average = self.average.with(sensed.now, ratio);
        let held = sensed.now < self.hold_until;
        if average > 1.0 && !held {
            let hold = u64::try_from(of.hold.as_nanos()).unwrap_or(u64::MAX);
            self.hold_until = Nanos(sensed.now.0.saturating_add(hold));
        }
        let per_second = match ratio {
            _ if held || average > 1.0 || ratio > of.panic => {
                self.power = 1.0;
                return;
            }
            over if over > 1.0 => of.raise,
            right if right >= of.slack => 0.0,
            some if some >= of.much_slack => -of.lower,
            _ => -of.lower_fast,
        };
        self.power += per_second * elapsed.as_secs_f64();
    }
}

impl Choose for Limiting {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        self.limit(sensed);
        // Less than the lowest frequency takes would only have to be earned back.
        let lowest = |core: &crate::node::NodeCore| {
            (f64::from(core.range.min.0) / f64::from(core.range.max.0.max(1))).powi(3)
        };
        let least = node.cores.iter().map(lowest).fold(1.0, f64::min);
        self.power = self.power.clamp(least, 1.0);
        for (_, range, _, setting) in online(node, sensed, plan) {
            let wanted = f64::from(range.max.0) * self.power.cbrt();
            *setting = Setting {
                frequency: range.at_least(Khz(wanted as u32)),
                rung: 0,
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

    /// A service whose latency is what its cores leave of `work` seconds at 1 GHz, looked at each second.
    struct Service {
        planner: Planner,
        plan: Plan,
        second: u64,
    }

    impl Service {
        fn new() -> Self {
            let policy = Policy::IsoLatency(IsoLatency::default());
            Self {
                planner: Planner::new(node(1), policy, Duration::from_secs(1)),
                plan: Plan::default(),
                second: 0,
            }
        }

        fn latency(&self, work: f64) -> f64 {
            let ghz = self
                .plan
                .cores
                .first()
                .map_or(2.6, |core| f64::from(core.frequency.0) / 1e6);
            work / ghz
        }

        fn run(&mut self, work: f64, seconds: u64) {
            for _ in 0..seconds {
                self.second += 1;
                let now = Nanos(NOW.0 + self.second * 1_000_000_000);
                let tail = Tail {
                    latency: Duration::from_secs_f64(self.latency(work)),
                    requests: 100,
                    at: now,
                };
                let sensed = Sensed {
                    now,
                    cores: vec![cold()],
                    tail: Some(tail),
                    ..Sensed::default()
                };
                self.planner.plan(&sensed, &mut self.plan);
            }
        }
    }

    #[test]
    fn latency_settles_just_under_the_target() {
        let mut service = Service::new();
        service.run(1.6, 120);
        let settled = service.latency(1.6);
        assert!((0.85..=1.0).contains(&settled), "{settled}");
        service.run(1.6, 60);
        assert_eq!(service.latency(1.6), settled);
    }

    #[test]
    fn with_nothing_to_do_it_ends_at_the_lowest_frequency() {
        let mut service = Service::new();
        service.run(0.1, 120);
        assert_eq!(service.plan.cores[0].frequency, Khz(1_000_000));
    }

    #[test]
    fn far_over_the_target_all_the_power_is_there_at_once_and_stays() {
        let mut service = Service::new();
        service.run(1.6, 120);
        service.run(9.0, 1);
        assert_eq!(service.plan.cores[0].frequency, Khz(2_600_000));
        service.run(9.0, 60);
        // Nothing is given back for five minutes; then it is.
        service.run(0.1, 230);
        assert_eq!(service.plan.cores[0].frequency, Khz(2_600_000));
        service.run(0.1, 120);
        assert_eq!(service.plan.cores[0].frequency, Khz(1_000_000));
    }
}
