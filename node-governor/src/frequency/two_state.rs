// SPDX-License-Identifier: Apache-2.0
//! Idle and hot: a frequency each.
//!
//! Medeiros, *Profile-guided frequency scaling for search workloads*, section 4.4; the default is the faster of the
//! two that it tries there, the one that meets its deadline.

use crate::frequency::{Choose, Frequency, Khz, Parameters, Wrong, online};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::Sensed;

/// The two frequencies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TwoState {
    /// No hot function runs on the core.
    pub idle: Frequency,
    /// One does.
    pub hot: Frequency,
}

impl Default for TwoState {
    fn default() -> Self {
        Self {
            idle: Frequency::Absolute(Khz(1_000_000)),
            hot: Frequency::Absolute(Khz(2_600_000)),
        }
    }
}

impl Parameters for TwoState {
    fn check(&self, node: &Node) -> Result<(), Wrong> {
        self.idle.check("idle", node)?;
        self.hot.check("hot", node)
    }

    fn begin(&self, _: &Node) -> Box<dyn Choose> {
        Box::new(*self)
    }
}

impl Choose for TwoState {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        for (_, range, seen, setting) in online(node, sensed, plan) {
            let (rung, frequency) = if seen.hot.is_cold() {
                (0, self.idle)
            } else {
                (1, self.hot)
            };
            *setting = Setting {
                frequency: frequency.on(range),
                rung,
            };
        }
    }
}
