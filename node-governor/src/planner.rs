// SPDX-License-Identifier: Apache-2.0
//! From what was sensed to what each core shall do. Pure.

use std::time::Duration;

use crate::frequency::{Choose, Policy};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::Sensed;

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
