// SPDX-License-Identifier: Apache-2.0
//! Times in state of a window: plain data.

use super::{FUNCTIONS, Khz, STEPS};

/// What the cores did in it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Window {
    /// How long it was.
    pub seconds: f64,
    /// Of it, how long a core was busy.
    pub awake_s: f64,
    /// Lowest frequency of the cores.
    pub lowest: Khz,
    /// Highest frequency of the cores.
    pub highest: Khz,
    /// By frequency; one that was seen before the window stays, with nothing.
    pub steps: Vec<Step>,
}

/// Core seconds at one frequency.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Step {
    /// The frequency.
    pub khz: Khz,
    /// In calls, by function.
    pub hot: [f64; FUNCTIONS],
    /// Busy without a call.
    pub other: f64,
    /// Idle.
    pub idle: f64,
}

impl Window {
    /// Where a frequency is counted.
    pub(super) fn step(&mut self, khz: Khz) -> usize {
        let found = self.steps.iter().position(|step| step.khz == khz);
        found.unwrap_or_else(|| {
            if self.steps.len() < STEPS {
                self.steps.push(Step {
                    khz,
                    ..Step::default()
                });
            }
            self.steps.len() - 1
        })
    }

    pub(super) fn clear(&mut self) {
        (self.seconds, self.awake_s) = (0.0, 0.0);
        for step in &mut self.steps {
            *step = Step {
                khz: step.khz,
                ..Step::default()
            };
        }
    }
}
