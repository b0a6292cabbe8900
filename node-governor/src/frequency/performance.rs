// SPDX-License-Identifier: Apache-2.0
//! Every core as fast as it can: the kernel's `performance` governor.

use crate::frequency::{Choose, Parameters, Wrong, online};
use crate::node::Node;
use crate::plan::{Plan, Setting};
use crate::sensed::Sensed;

/// Has nothing to be told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Performance;

impl Parameters for Performance {
    fn check(&self, _: &Node) -> Result<(), Wrong> {
        Ok(())
    }

    fn begin(&self, _: &Node) -> Box<dyn Choose> {
        Box::new(*self)
    }
}

impl Choose for Performance {
    fn choose(&mut self, node: &Node, sensed: &Sensed, plan: &mut Plan) {
        for (_, range, _, setting) in online(node, sensed, plan) {
            *setting = Setting {
                frequency: range.max,
                rung: 0,
            };
        }
    }
}
