// SPDX-License-Identifier: Apache-2.0
//! A window's energy, part by part. Pure.

use super::{FUNCTIONS, OTHER, PARTS, Power, SHARED, Window};

/// Tells of each step its joules by part: in proportion to what the model says that its times take, and in all as
/// much as was measured; or just what the model says, where nothing was. What the package takes goes to the steps by
/// the cores' time at them.
pub fn split(
    window: &Window,
    power: &Power,
    measured: Option<f64>,
    mut tell: impl FnMut(usize, [f64; PARTS]),
) {
    let core_s: f64 = window.steps.iter().map(|step| step.core_seconds()).sum();
    if core_s <= 0.0 {
        return;
    }
    let package_j = window.seconds * power.package_watts + window.awake_s * power.awake_watts;
    let modelled = |step: &super::Step| {
        let active = power.active(step.khz, window.lowest, window.highest);
        let mut parts = [0.0; PARTS];
        for (part, seconds) in parts.iter_mut().zip(step.hot) {
            *part = seconds * active;
        }
        parts[OTHER] = step.other * active;
        parts[SHARED] = step.idle * power.idle_watts + package_j * step.core_seconds() / core_s;
        parts
    };
    let whole: f64 = window.steps.iter().flat_map(modelled).sum();
    for (number, step) in window.steps.iter().enumerate() {
        let mut parts = modelled(step);
        match measured {
            // What the model knows nothing of is nobody's.
            Some(joules) if whole <= 0.0 => parts[SHARED] = joules * step.core_seconds() / core_s,
            Some(joules) => parts.iter_mut().for_each(|part| *part *= joules / whole),
            None => {}
        }
        tell(number, parts);
    }
}

impl super::Step {
    fn core_seconds(&self) -> f64 {
        self.hot.iter().sum::<f64>() + self.other + self.idle
    }
}

const _: () = assert!(OTHER == FUNCTIONS && SHARED + 1 == PARTS);
