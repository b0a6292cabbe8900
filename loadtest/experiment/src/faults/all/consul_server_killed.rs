// SPDX-License-Identifier: Apache-2.0
//! Consul's only server is killed and comes back.

use super::consul_gone::lose;
use crate::faults::fault::{Expectation, Fault, Length};

pub(crate) const FAULT: Fault = Fault {
    name: "consul-server-killed",
    expectation: Expectation::nothing_fails(
        "nothing fails: the agent answers with what it has, or says that it cannot, and nobody forgets a host",
    ),
    own: None,
    full: Length::full(10, 30, 20),
    short: None,
    run: |stage| lose(stage, &["consul-server"]),
    known_gap: None,
};
