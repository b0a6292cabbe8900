// SPDX-License-Identifier: Apache-2.0
//! Of two weir-controls the one that leads is asked to end, and is started again later.

use anyhow::Result;
use weir_mesh::Control;

use super::leader_killed::{lose_leader, two};
use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::stage::Stage;

/// It gives its lock back.
const TAKEN_OVER: f64 = 2.0;

pub(crate) const FAULT: Fault = Fault {
    name: "leader-stopped",
    expectation: Expectation::nothing_fails(
        "nothing fails, and callers have tables of the other one within 2 s",
    ),
    own: Some(two),
    full: Length::full(10, 30, 20),
    short: Some(Length::short(2, 8, 3)),
    run: |stage| {
        lose_leader(stage, TAKEN_OVER, stop, |stage, leader| {
            stage.mesh().processes().again(&leader.name).map(drop)
        })
    },
    known_gap: None,
};

fn stop(stage: &mut Stage<'_>, leader: &Control) -> Result<()> {
    stage.mesh().processes().dismiss(&leader.name)
}
