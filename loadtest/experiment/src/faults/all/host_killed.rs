// SPDX-License-Identifier: Apache-2.0
//! A host and its sidecar are killed and come back.

use anyhow::Result;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "host-killed",
    expectation: Expectation::capacity_remains(
        "only what was at the killed host fails; what comes later goes to another host at the next try",
    ),
    own: None,
    full: Length::full(10, 30, 20),
    short: Some(Length::short(2, 4, 3)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let host = stage.busiest()?;
    stage.kill(&host)?;
    stage.harm()?;
    stage.again(&host)
}
