// SPDX-License-Identifier: Apache-2.0
//! Consul's agent, which all sidecars and weir-control ask, is killed and comes back.

use super::consul_gone::lose;
use crate::faults::fault::{Expectation, Fault, Length};

pub(crate) const FAULT: Fault = Fault {
    name: "consul-agent-killed",
    expectation: Expectation::nothing_fails(
        "nothing fails: sidecars and weir-control go on with what they were told",
    ),
    own: None,
    full: Length::full(10, 30, 20),
    short: None,
    run: |stage| lose(stage, &["consul"]),
    known_gap: None,
};
