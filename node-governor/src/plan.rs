// SPDX-License-Identifier: Apache-2.0
//! What each core shall do, and who has it: plain data.

use std::time::Duration;

use crate::cores::{CorePlan, Cores};
use crate::node::{Khz, Node, NodeCore};

/// What each core shall do, and who has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// One for each core of the [`Node`], in its order.
    pub cores: Vec<Setting>,
    /// Who has which cores; none where they are not divided.
    pub shares: Option<CorePlan>,
    /// The mesh refuses requests to the service's host or is about to ([`crate::pressure`]).
    pub pressed: bool,
    /// Until the next tick.
    pub sleep: Duration,
}

impl Plan {
    /// What the service has, in thousandths of a core at its highest speed: these cores, or all where they are not
    /// divided. Cores without a frequency of ours count whole.
    pub fn capacity_millicores(&self, node: &Node, service: Option<&Cores>) -> u32 {
        let speed = |core: &NodeCore, setting: &Setting| match setting.frequency {
            Khz(0) => 1.0,
            frequency => f64::from(frequency.0) / f64::from(core.range.max.0.max(1)),
        };
        let settings = || node.cores.iter().zip(&self.cores);
        let capacity = match service {
            None => settings().map(|(core, setting)| speed(core, setting)).sum(),
            Some(service) => {
                let of = |number: &u32| {
                    let found = settings().find(|(core, _)| core.number == *number);
                    found.map_or(1.0, |(core, setting)| speed(core, setting))
                };
                service.numbers().iter().map(of).sum::<f64>()
            }
        };
        // Floats become whole numbers at the bounds of those.
        (capacity * 1000.0).round() as u32
    }
}

/// What one core shall do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// One that the core's [`Range`](crate::node::Range) has.
    pub frequency: Khz,
    /// Which rung of the policy's ladder it stands for: 0 is idle, 1 the first step. Policies without a ladder
    /// stay at 0.
    pub rung: usize,
}
