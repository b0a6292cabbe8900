// SPDX-License-Identifier: Apache-2.0
//! A host and its sidecar are killed and come back.

use anyhow::Result;

use crate::fault::{Expectation, Fault, Length};
use crate::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "host-killed",
    expectation: Expectation::capacity_remains(
        "only what the killed host had begun fails; the next try of others goes to another host",
    ),
    own: None,
    full: Length::full(10, 30, 20),
    short: Some(Length::short(2, 4, 3)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let host = stage.host(0);
    stage.kill(&host)?;
    stage.harm()?;
    stage.again(&host)
}
