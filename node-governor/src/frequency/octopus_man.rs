// SPDX-License-Identifier: Apache-2.0
//! All cores alike: a step up when the latency is near its target, a step down when it is far from it.
//!
//! Octopus-Man: Petrucci et al., *Octopus-Man: QoS-driven task management for heterogeneous multicores in warehouse-scale
//! computers*, HPCA 2015: a ladder of configurations in the order of their speed, a danger zone below the target in
//! which it climbs, a safe zone in which it comes down. Told from memory, for the text was not at hand; the bounds of
//! the zones, which the paper searches for each service, are ours. Its rungs are sets of small and big cores. Here
//! cores are alike, and the rungs are frequencies.

use std::time::Duration;

use crate::frequency::{Choose, Frequency, Parameters, Wrong, online};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::{Nanos, Sensed};

/// The highest rung of the ladder, from the lowest frequency to the highest.
pub(super) const TOP: usize = 8;

/// The target and the zones below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OctopusMan {
    /// The limit for the quantile of [`Tail`](crate::sensed::Tail). By default the second of Medeiros, chapter 4.
    pub target: Duration,
    /// Above this share of the target it climbs.
    pub danger: f64,
    /// Below this share it comes down.
    pub safe: f64,
    /// Between two steps: as long as a measurement looks back, or a step is judged by what came before it.
    pub interval: Duration,
    /// A measurement older than this is none, and without one every core is at its highest. Ours.
    pub stale: Duration,
}

impl Default for OctopusMan {
    fn default() -> Self {
        Self {
            target: Duration::from_secs(1),
            danger: 0.85,
            safe: 0.6,
            interval: Duration::from_secs(30),
            stale: Duration::from_secs(10),
        }
    }
}

impl OctopusMan {
    /// The rung after this one, at this latency as a share of the target.
    pub(super) fn step(&self, rung: usize, ratio: f64) -> usize {
        climb(rung, TOP, ratio, self.danger, self.safe)
    }
}

/// The rung after this one of those up to `top`, at this latency as a share of the target. Over it there is no time for
/// single steps.
pub(crate) fn climb(rung: usize, top: usize, ratio: f64, danger: f64, safe: f64) -> usize {
    match ratio {
        over if over > 1.0 => top,
        near if near > danger => (rung + 1).min(top),
        far if far < safe => rung.saturating_sub(1),
        _ => rung,
    }
}

/// Every online core at a rung.
pub(super) fn set(rung: usize, node: &Node, sensed: &Sensed, plan: &mut Plan) {
    let share = Frequency::Share(rung as f64 / TOP as f64);
    for (_, range, _, setting) in online(node, sensed, plan) {
        *setting = Setting {
            frequency: share.on(range),
            rung: 0,
        };
    }
}

impl Parameters for OctopusMan {
    fn check(&self, _: &Node) -> Result<(), Wrong> {
        let wrong = |field, reason| Err(Wrong::new(field, reason));
        if self.target.is_zero() {
            return wrong("target", "must not be 0");
        }
        if !(self.danger > 0.0 && self.danger <= 1.0) {
            return wrong("danger", "must be more than 0 and at most 1");
        }
        if !(self.safe >= 0.0 && self.safe < self.danger) {
            return wrong("safe", "must be from 0 to less than danger");
        }
        if self.interval.is_zero() {
            return wrong("interval", "must not be 0");
        }
        Ok(())
    }

    fn begin(&self, _: &Node) -> Box<dyn Choose> {
        Box::new(Climbing {
            parameters: *self,
            rung: TOP,
            stepped: None,
        })
    }
}

#[derive(Debug)]
struct Climbing {
    parameters: OctopusMan,
    rung: usize,
    stepped: Option<Nanos>,
}

impl Choose for Climbing {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        let of = &self.parameters;
        let stepped = *self.stepped.get_or_insert(sensed.now);
        match sensed.fresh_tail(of.stale) {
            None => (self.rung, self.stepped) = (TOP, Some(sensed.now)),
            Some(tail) if sensed.now.since(stepped) >= of.interval => {
                let ratio = tail.latency.div_duration_f64(of.target);
                (self.rung, self.stepped) = (of.step(self.rung, ratio), Some(sensed.now));
            }
            Some(_) => {}
        }
        set(self.rung, node, sensed, plan);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_climbs_in_danger_and_comes_down_where_it_is_safe() {
        let ladder = OctopusMan::default();
        assert_eq!(ladder.step(3, 0.9), 4);
        assert_eq!(ladder.step(3, 0.7), 3);
        assert_eq!(ladder.step(3, 0.5), 2);
        assert_eq!(ladder.step(3, 1.1), TOP);
        assert_eq!((ladder.step(TOP, 0.9), ladder.step(0, 0.1)), (TOP, 0));
    }
}
