// SPDX-License-Identifier: Apache-2.0
//! Of two weir-controls the one that leads is frozen, and thawed when the other one leads.

use nix::sys::signal::Signal;

use super::leader_killed::{lose_leader, two};
use crate::faults::fault::{Expectation, Fault, Length};

/// As when it is killed, and its sidecar has to notice: 7 s at most, at the same time.
const TAKEN_OVER: f64 = 25.0;

pub(crate) const FAULT: Fault = Fault {
    name: "leader-frozen",
    expectation: Expectation::nothing_fails(
        "nothing fails, callers have tables of the other one within 25 s, and none listens to the old one again",
    ),
    own: Some(two),
    full: Length::full(10, 40, 20),
    short: None,
    run: |stage| {
        lose_leader(
            stage,
            TAKEN_OVER,
            |stage, leader| {
                let processes = stage.mesh().processes();
                processes.signal(&leader.name, Signal::SIGSTOP)
            },
            |stage, leader| {
                let processes = stage.mesh().processes();
                processes.signal(&leader.name, Signal::SIGCONT)
            },
        )
    },
    known_gap: None,
};
