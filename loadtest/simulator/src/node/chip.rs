// SPDX-License-Identifier: Apache-2.0
//! What the processor can be set to, how fast it then is and what it takes: a MODEL.
//!
//! Power of a working core is C·V²·f and leakage, with V linear in f (document 002, section 2.1, has the law).

use weir_governor::frequency::{Khz, Range};

use super::Params;
use super::idle::State;

/// Lowest frequency of the Xeon Gold 6126 in the experiments (section 4.1).
pub const MIN: Khz = Khz(1_000_000);
/// Highest, without turbo (section 4.1).
pub const MAX: Khz = Khz(2_600_000);
/// What acpi-cpufreq offers in between: our assumption.
const STEP: u32 = 100_000;

/// Those that a core can be set to, ascending.
#[must_use]
pub fn steps() -> Vec<Khz> {
    (MIN.0..=MAX.0).step_by(STEP as usize).map(Khz).collect()
}

/// Speeds and powers by step.
#[derive(Debug)]
pub(super) struct Chip {
    pub(super) steps: Vec<Khz>,
    /// Work done a second, against 2.6 GHz.
    pub(super) speed: Vec<f64>,
    /// Watts of a core that works.
    pub(super) active_w: Vec<f64>,
    c1_w: Vec<f64>,
    c6_w: f64,
    pub(super) package_w: f64,
    pub(super) uncore_w: f64,
}

impl Chip {
    pub(super) fn new(params: &Params) -> Self {
        let steps = steps();
        let share = |khz: &Khz| f64::from(khz.0) / f64::from(MAX.0);
        let power = params.power();
        let memory = params.memory_share.min(1.0);
        let speed = |khz: &Khz| 1.0 / (memory + (1.0 - memory) / share(khz));
        let c1 = |khz: &Khz| power.leak(*khz, MIN, MAX);
        let active = |khz: &Khz| power.active(*khz, MIN, MAX);
        Self {
            speed: steps.iter().map(speed).collect(),
            active_w: steps.iter().map(active).collect(),
            c1_w: steps.iter().map(c1).collect(),
            c6_w: params.c6_w,
            package_w: params.package_w,
            uncore_w: params.uncore_w,
            steps,
        }
    }

    pub(super) fn range(&self) -> Range {
        Range {
            min: MIN,
            max: MAX,
            steps: self.steps.clone(),
        }
    }

    /// The step of a frequency that a plan has; the fastest for what is no step.
    pub(super) fn step(&self, khz: Khz) -> usize {
        let above = self.steps.partition_point(|step| *step < khz);
        above.min(self.steps.len() - 1)
    }

    /// Watts of an idle core that is set to `step`.
    pub(super) fn idle_w(&self, state: State, step: usize) -> f64 {
        match state {
            // It runs a loop.
            State::C0 => self.active_w[step],
            State::C1 => self.c1_w[step],
            // Also the lowest voltage.
            State::C1e => self.c1_w[0],
            State::C6 => self.c6_w,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_range_is_the_documents_and_every_step_is_found_again() {
        let chip = Chip::new(&Params::default());
        assert_eq!((chip.steps[0], chip.steps[16]), (MIN, MAX));
        for (number, khz) in chip.steps.iter().enumerate() {
            assert_eq!(chip.step(*khz), number);
        }
    }

    proptest! {
        #[test]
        fn more_frequency_is_more_speed_and_more_power(memory in 0.001f64..0.9, volts in 0.3f64..1.0) {
            let params = Params { memory_share: memory, low_volts: volts, ..Params::default() };
            let chip = Chip::new(&params);
            prop_assert!(chip.speed.is_sorted() && chip.active_w.is_sorted() && chip.c1_w.is_sorted());
            prop_assert!((chip.speed[16] - 1.0).abs() < 1e-12);
            for step in 0..chip.steps.len() {
                let of = |state| chip.idle_w(state, step);
                prop_assert!(of(State::C0) > of(State::C1) && of(State::C1) >= of(State::C1e));
                prop_assert!(of(State::C1e) > of(State::C6));
            }
        }
    }
}
