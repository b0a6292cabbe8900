// SPDX-License-Identifier: Apache-2.0
//! A host's sidecar is killed; the application behind it goes on.

use std::time::Duration;

use anyhow::Result;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::stage::{Stage, sidecar};

pub(crate) const FAULT: Fault = Fault {
    name: "sidecar-killed",
    expectation: Expectation::capacity_remains(
        "only what was at the killed sidecar fails; what comes later goes to another host at the next try",
    ),
    own: None,
    full: Length::full(10, 30, 20),
    short: Some(Length::short(2, 4, 3)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let host = stage.busiest()?;
    stage.share(&host, Duration::from_secs(2), Some(2.0));
    stage.kill_process(&host, &sidecar(&host.name))?;
    stage.harm()?;
    stage.mesh().processes().again(&sidecar(&host.name))?;
    Ok(())
}
