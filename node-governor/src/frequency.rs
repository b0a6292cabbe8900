// SPDX-License-Identifier: Apache-2.0
//! Policies that choose core frequencies. A new one is a file, a variant and an arm.

pub mod adaptive;
mod average;
mod budget;
mod calls;
pub mod hipster;
pub mod iso_latency;
pub mod multi_state;
pub mod octopus_man;
pub mod ondemand;
pub mod performance;
pub mod powersave;
pub mod rubik;
pub mod schedutil;
pub mod slow_to_fast;
pub mod three_state;
pub mod two_state;

use std::fmt;

pub use crate::node::{Khz, Range};

use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::{Core, Sensed};

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

    /// Refuses what is outside what every core can do, and shares that are none.
    pub(crate) fn check(self, field: &str, node: &Node) -> Result<(), Wrong> {
        let lowest = node.cores.iter().map(|core| core.range.min).min();
        let highest = node.cores.iter().map(|core| core.range.max).max();
        let reason = match (self, lowest.zip(highest)) {
            (Self::Share(share), _) if !(0.0..=1.0).contains(&share) => {
                format!("{share} is not a share from 0 to 1")
            }
            (Self::Absolute(khz), Some((lowest, _))) if khz < lowest => {
                format!("{khz} is below the {lowest} that the cores can be set to")
            }
            (Self::Absolute(khz), Some((_, highest))) if khz > highest => {
                format!("{khz} is above the {highest} that the cores can be set to")
            }
            _ => return Ok(()),
        };
        Err(Wrong::new(field, reason))
    }
}

/// A parameter that cannot be meant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// As it is written in the policy's own part of a configuration.
    pub field: String,
    /// What is wrong with it.
    pub reason: String,
}

impl Wrong {
    pub(crate) fn new(field: impl Into<String>, reason: impl Into<String>) -> Self {
        Self {
            field: field.into(),
            reason: reason.into(),
        }
    }
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.reason)
    }
}

impl std::error::Error for Wrong {}

/// How frequencies are chosen.
#[derive(Clone, Debug, PartialEq)]
pub enum Policy {
    /// As fast as every core can.
    Performance(performance::Performance),
    /// As slow as every core can.
    Powersave(powersave::Powersave),
    /// By how busy each core is, as the kernel does.
    Ondemand(ondemand::Ondemand),
    /// By how much each core has been used lately, as the kernel does.
    Schedutil(schedutil::Schedutil),
    /// By whether a hot function runs.
    TwoState(two_state::TwoState),
    /// By whether a hot function runs and for how long.
    ThreeState(three_state::ThreeState),
    /// By which hot function runs and for how long, in any number of steps.
    MultiState(multi_state::MultiState),
    /// All cores alike, just fast enough for the service's latency.
    IsoLatency(iso_latency::IsoLatency),
    /// Slow, then fast; the time between follows the service's latency.
    SlowToFast(slow_to_fast::SlowToFast),
    /// By what calls have needed so far and what the target leaves for them.
    Adaptive(adaptive::Adaptive),
    /// By what the calls that run and wait may still need.
    Rubik(rubik::Rubik),
    /// All cores alike, a step up or down by the service's latency.
    OctopusMan(octopus_man::OctopusMan),
    /// All cores alike, at what has paid at this load.
    Hipster(hipster::Hipster),
}

impl Policy {
    /// A core of whose calls nothing is told is slow, however busy it is.
    pub(crate) fn waits_for_calls(&self) -> bool {
        matches!(
            self,
            Self::TwoState(_)
                | Self::ThreeState(_)
                | Self::MultiState(_)
                | Self::SlowToFast(_)
                | Self::Adaptive(_)
                | Self::Rubik(_)
        )
    }

    fn parameters(&self) -> &dyn Parameters {
        match self {
            Self::Performance(policy) => policy,
            Self::Powersave(policy) => policy,
            Self::Ondemand(policy) => policy,
            Self::Schedutil(policy) => policy,
            Self::TwoState(policy) => policy,
            Self::ThreeState(policy) => policy,
            Self::MultiState(policy) => policy,
            Self::IsoLatency(policy) => policy,
            Self::SlowToFast(policy) => policy,
            Self::Adaptive(policy) => policy,
            Self::Rubik(policy) => policy,
            Self::OctopusMan(policy) => policy,
            Self::Hipster(policy) => policy,
        }
    }

    /// Whether the policy goes by [`Core::busy`] alone.
    pub(crate) fn goes_by_load(&self) -> bool {
        matches!(self, Self::Ondemand(_) | Self::Schedutil(_))
    }

    /// Refuses parameters that cannot be meant on these cores, by the field's name.
    pub fn check(&self, node: &Node) -> Result<(), Wrong> {
        self.parameters().check(node)
    }

    /// Allocates all that the policy will ever need.
    pub(crate) fn begin(&self, node: &Node) -> Box<dyn Choose> {
        self.parameters().begin(node)
    }
}

/// What a policy has to be told.
pub(crate) trait Parameters {
    /// See [`Policy::check`].
    fn check(&self, node: &Node) -> Result<(), Wrong>;

    /// The policy at work.
    fn begin(&self, node: &Node) -> Box<dyn Choose>;
}

/// A policy at work.
pub(crate) trait Choose: fmt::Debug + Send {
    /// Sets every online core's [`Setting`], and `plan.sleep` where the policy has a period of its own. Does not
    /// allocate.
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan);
}

/// The cores that are planned for, with their positions.
pub(crate) fn online<'a>(
    node: &'a Node,
    sensed: &'a Sensed,
    plan: &'a mut Plan,
) -> impl Iterator<Item = (usize, &'a Range, &'a Core, &'a mut Setting)> {
    let cores = node.cores.iter().zip(&sensed.cores).zip(&mut plan.cores);
    cores
        .enumerate()
        .filter(|(_, ((_, seen), _))| seen.online)
        .map(|(position, ((core, seen), setting))| (position, &core.range, seen, setting))
}

#[cfg(test)]
pub(crate) mod tests;
