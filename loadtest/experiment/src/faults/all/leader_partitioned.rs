// SPDX-License-Identifier: Apache-2.0
//! Of two weir-controls the one that leads is cut off from Consul, callers, hosts and the other one, and comes back.

use super::leader_killed::{lose_leader, two};
use crate::faults::fault::{Expectation, Fault, Length};

/// As when it is killed.
const TAKEN_OVER: f64 = 25.0;

pub(crate) const FAULT: Fault = Fault {
    name: "leader-partitioned",
    expectation: Expectation::nothing_fails(
        "nothing fails, callers have tables of the other one within 25 s, and none listens to the old one again",
    ),
    own: Some(|plan, programs| {
        plan.netns = true;
        two(plan, programs)
    }),
    full: Length::full(10, 40, 20),
    // It needs root.
    short: None,
    run: |stage| {
        lose_leader(
            stage,
            TAKEN_OVER,
            |stage, leader| stage.mesh().cut(&leader.name),
            |stage, leader| stage.mesh().mend(&leader.name),
        )
    },
    known_gap: None,
};
