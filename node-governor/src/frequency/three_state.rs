// SPDX-License-Identifier: Apache-2.0
//! Idle, hot, and hot for too long: a frequency each.
//!
//! Algorithms 1 and 2 of Medeiros, *Profile-guided frequency scaling for search workloads*, section 3.2; the
//! defaults are those that it is calibrated to in section 4.8.

use std::time::Duration;

use crate::frequency::{Frequency, Khz};
use crate::plan::{Node, Plan, Setting};
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

impl ThreeState {
    pub(super) fn choose(&self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        for ((core, seen), setting) in node.cores.iter().zip(&sensed.cores).zip(&mut plan.cores) {
            let longest = seen
                .hot
                .running()
                .map(|(_, since)| sensed.now.since(since))
                .max();
            let (rung, frequency) = match longest {
                None => (0, self.idle),
                Some(took) if took < self.threshold => (1, self.hot),
                Some(_) => (2, self.over),
            };
            *setting = Setting {
                frequency: frequency.on(&core.range),
                rung,
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frequency::Range;
    use crate::plan::NodeCore;
    use crate::sensed::{Core, Nanos};

    const RANGE: [u32; 4] = [1_000_000, 1_600_000, 2_000_000, 2_600_000];

    fn node() -> Node {
        let steps: Vec<Khz> = RANGE.into_iter().map(Khz).collect();
        let range = Range {
            min: steps[0],
            max: steps[3],
            steps,
        };
        Node {
            cores: vec![NodeCore { number: 0, range }],
        }
    }

    fn after(millis: Option<u64>) -> Setting {
        let now = Nanos(10_000_000_000);
        let mut core = Core {
            online: true,
            ..Core::default()
        };
        if let Some(millis) = millis {
            core.hot.enter(1, Nanos(now.0 - millis * 1_000_000));
            // A call that began later does not hide the first.
            core.hot.enter(1, now);
        }
        let sensed = Sensed {
            now,
            cores: vec![core],
            ..Sensed::default()
        };
        let mut plan = Plan {
            cores: vec![Setting::default()],
            ..Plan::default()
        };
        ThreeState::default().choose(&node(), &sensed, &mut plan);
        plan.cores[0]
    }

    #[test]
    fn a_core_speeds_up_on_entry_and_again_at_the_threshold() {
        let set = |khz, rung| Setting {
            frequency: Khz(khz),
            rung,
        };
        assert_eq!(after(None), set(1_000_000, 0));
        assert_eq!(after(Some(0)), set(2_000_000, 1));
        assert_eq!(after(Some(449)), set(2_000_000, 1));
        assert_eq!(after(Some(450)), set(2_600_000, 2));
    }
}
