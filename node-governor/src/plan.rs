// SPDX-License-Identifier: Apache-2.0
//! What each core shall do, and who has it: plain data.

use std::time::Duration;

use crate::cores::CorePlan;
use crate::node::Khz;

/// What each core shall do, and who has it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// One for each core of the [`Node`](crate::node::Node), in its order.
    pub cores: Vec<Setting>,
    /// Who has which cores; none where they are not divided.
    pub shares: Option<CorePlan>,
    /// The mesh refuses requests to the service's host or is about to ([`crate::pressure`]).
    pub pressed: bool,
    /// Until the next tick.
    pub sleep: Duration,
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
