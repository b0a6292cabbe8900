// SPDX-License-Identifier: Apache-2.0
//! The cores that are governed, and what each can be set to.

use std::fmt;

/// The cores that are governed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Node {
    /// In the order of their numbers.
    pub cores: Vec<NodeCore>,
}

/// A core that is governed.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeCore {
    /// As the kernel counts: 3 is `cpu3`.
    pub number: u32,
    /// What it can be set to.
    pub range: Range,
}

/// In kHz, cpufreq's unit.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Khz(pub u32);

impl fmt::Debug for Khz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Khz {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GHz", f64::from(self.0) / 1e6)
    }
}

/// What a core can be set to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// At least.
    pub min: Khz,
    /// At most.
    pub max: Khz,
    /// Those between which there is nothing, ascending; empty where anything from `min` to `max` will do.
    pub steps: Vec<Khz>,
}

impl Range {
    /// The lowest that is no slower than `wanted`, as the kernel rounds (`CPUFREQ_RELATION_L`).
    pub fn at_least(&self, wanted: Khz) -> Khz {
        let wanted = wanted.max(self.min).min(self.max);
        let mut allowed = self.steps.iter().copied().filter(|step| *step <= self.max);
        match allowed.find(|step| *step >= wanted) {
            Some(step) => step,
            None if self.steps.is_empty() => wanted,
            None => self.max,
        }
    }

    /// The one closest to `wanted`, the higher of two (`CPUFREQ_RELATION_C`).
    pub fn closest(&self, wanted: Khz) -> Khz {
        let above = self.at_least(wanted);
        let below = self.steps.iter().copied().filter(|step| *step < wanted);
        match below.max() {
            Some(below) if wanted.0 - below.0 < above.0.abs_diff(wanted.0) => below.max(self.min),
            _ => above,
        }
    }
}
