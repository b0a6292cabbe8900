// SPDX-License-Identifier: Apache-2.0
//! Policies that choose core frequencies. A new one is a file, a variant and an arm.

pub mod three_state;

use std::fmt;

use crate::plan::{Node, Plan};
use crate::sensed::Sensed;

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
        let wanted = wanted.clamp(self.min, self.max);
        let first = self.steps.iter().copied().find(|step| *step >= wanted);
        if self.steps.is_empty() {
            wanted
        } else {
            first.unwrap_or(self.max)
        }
    }
}

/// A frequency as it is written: the same on every core, or by what the core can do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Frequency {
    /// In kHz.
    Absolute(Khz),
    /// 0 is the lowest of the core, 1 the highest.
    Share(f64),
}

impl Frequency {
    /// What it is on a core.
    pub fn on(self, range: &Range) -> Khz {
        match self {
            Self::Absolute(khz) => range.at_least(khz),
            Self::Share(share) => {
                let width = f64::from(range.max.0.saturating_sub(range.min.0));
                range.at_least(Khz(range.min.0 + (share.clamp(0.0, 1.0) * width) as u32))
            }
        }
    }
}

/// How frequencies are chosen.
#[derive(Debug)]
pub enum Policy {
    /// By whether a hot function runs and for how long.
    ThreeState(three_state::ThreeState),
}

impl Policy {
    /// Sets every online core's [`Setting`](crate::plan::Setting).
    pub(crate) fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        match self {
            Self::ThreeState(policy) => policy.choose(node, sensed, plan),
        }
    }
}
