// SPDX-License-Identifier: Apache-2.0
//! Idle, hot, and hot for too long: a frequency each.
//!
//! Algorithms 1 and 2 of Medeiros, *Profile-guided frequency scaling for search workloads*, section 3.2; the
//! defaults are those that it is calibrated to in section 4.8.

use std::time::Duration;

use crate::frequency::{Choose, Frequency, Khz, Parameters, Wrong, online};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::Sensed;

/// The three frequencies and the time between the last two.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ThreeState {
    /// No hot function runs on the core.
    pub idle: Frequency,
    /// One does.
    pub hot: Frequency,
    /// One has for at least `threshold`.
    pub over: Frequency,
    /// Of the call that has been running longest.
    pub threshold: Duration,
}

impl Default for ThreeState {
    fn default() -> Self {
        Self {
            idle: Frequency::Absolute(Khz(1_000_000)),
            hot: Frequency::Absolute(Khz(2_000_000)),
            over: Frequency::Absolute(Khz(2_600_000)),
            threshold: Duration::from_millis(450),
        }
    }
}

impl Parameters for ThreeState {
    fn check(&self, node: &Node) -> Result<(), Wrong> {
        self.idle.check("idle", node)?;
        self.hot.check("hot", node)?;
        self.over.check("over", node)
    }

    fn begin(&self, _: &Node) -> Box<dyn Choose> {
        Box::new(*self)
    }
}

impl Choose for ThreeState {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        for (_, range, seen, setting) in online(node, sensed, plan) {
            let (rung, frequency) = match seen.hot.longest(sensed.now) {
                None => (0, self.idle),
                Some(took) if took < self.threshold => (1, self.hot),
                Some(_) => (2, self.over),
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
    use crate::frequency::tests::{cold, hot, node, settings};

    fn after(running: Option<u64>) -> (u32, usize) {
        // A call that began later does not hide the first.
        let core = running.map_or(cold(), |first| hot(&[(1, first), (1, 0)]));
        let policy = Policy::ThreeState(ThreeState::default());
        let setting = settings(&policy, &node(1), [core])[0];
        (setting.frequency.0, setting.rung)
    }

    #[test]
    fn a_core_speeds_up_on_entry_and_again_at_the_threshold() {
        assert_eq!(after(None), (1_000_000, 0));
        assert_eq!(after(Some(0)), (2_000_000, 1));
        assert_eq!(after(Some(449)), (2_000_000, 1));
        assert_eq!(after(Some(450)), (2_600_000, 2));
    }
}
