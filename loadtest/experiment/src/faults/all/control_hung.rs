// SPDX-License-Identifier: Apache-2.0
//! The only weir-control is frozen behind its sidecar, which still answers.

use weir_mesh::CONTROL;

use super::stream_blackholed::freeze;
use crate::faults::fault::{Expectation, Fault, Length};

pub(crate) const FAULT: Fault = Fault {
    name: "control-hung",
    expectation: Expectation::nothing_fails(
        "nothing fails, and callers know within 10 s that nobody is there",
    ),
    own: None,
    full: Length::full(10, 30, 20),
    short: None,
    run: |stage| freeze(stage, CONTROL),
    known_gap: None,
};
