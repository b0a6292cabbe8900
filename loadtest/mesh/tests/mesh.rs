// SPDX-License-Identifier: Apache-2.0
//! A real mesh: Consul, sidecars, hosts, weir-control, Prometheus. One for most tests; each puts back what it
//! has changed.
//!
//! Where a program cannot be had (`WEIR_CONSUL`, `WEIR_ENVOY` or `WEIR_FILTER_WASM` is not set) the tests are
//! reported as ignored.

#[path = "mesh/background.rs"]
mod background;
#[path = "mesh/choices.rs"]
mod choices;
#[path = "mesh/entries.rs"]
mod entries;
#[path = "mesh/federation.rs"]
mod federation;
#[path = "mesh/intentions.rs"]
mod intentions;
#[path = "mesh/links.rs"]
mod links;
#[path = "mesh/load.rs"]
mod load;
#[path = "mesh/losses.rs"]
mod losses;
#[path = "mesh/members.rs"]
mod members;
#[path = "mesh/stage.rs"]
mod stage;
#[path = "mesh/static_control.rs"]
mod static_control;
#[path = "mesh/transparent.rs"]
mod transparent;
#[path = "mesh/waits.rs"]
mod waits;

use std::process::ExitCode;

fn main() -> ExitCode {
    stage::run(&[
        choices::SCENARIOS,
        intentions::SCENARIOS,
        entries::SCENARIOS,
        losses::SCENARIOS,
        members::SCENARIOS,
        static_control::SCENARIOS,
        links::SCENARIOS,
        transparent::SCENARIOS,
        federation::SCENARIOS,
        background::SCENARIOS,
    ])
}
