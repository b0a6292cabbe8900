// SPDX-License-Identifier: Apache-2.0
//! From what was sensed to what each core shall do. Pure.

use std::time::Duration;

use crate::frequency::{Choose, Khz, Policy, Range};
use crate::sensed::Sensed;

/// The cores that are governed.
#[derive(Clone, Debug, PartialEq)]
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

/// What each core shall do.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// One for each core of the [`Node`], in its order.
    pub cores: Vec<Setting>,
    /// Until the next tick.
    pub sleep: Duration,
}

/// What one core shall do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Setting {
    /// One that the core's [`Range`] has.
    pub frequency: Khz,
    /// Which rung of the policy's ladder it stands for: 0 is idle, 1 the first step. Policies without a ladder
    /// stay at 0.
    pub rung: usize,
}

/// Turns what was sensed into a plan, tick by tick.
#[derive(Debug)]
pub struct Planner {
    node: Node,
    policy: Box<dyn Choose>,
    period: Duration,
}

impl Planner {
    /// `period` is what the plan sleeps for where the policy does not choose that itself. What
    /// [`Policy::check`] refuses still gives plans, of frequencies that the cores have.
    pub fn new(node: Node, policy: Policy, period: Duration) -> Self {
        Self {
            policy: policy.begin(&node),
            node,
            period,
        }
    }

    /// The cores that are planned for.
    pub fn node(&self) -> &Node {
        &self.node
    }

    /// Fills in `plan`. Allocates only until the plan has room for every core.
    pub fn plan(&mut self, sensed: &Sensed, plan: &mut Plan) {
        plan.sleep = self.period;
        plan.cores.resize(self.node.cores.len(), Setting::default());
        self.policy.choose(&self.node, sensed, plan);
    }
}
