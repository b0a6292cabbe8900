// SPDX-License-Identifier: Apache-2.0
//! Requests for one key that every host answers 500 to.

use std::time::Duration;

use anyhow::{Result, ensure};

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::load::Manner;
use crate::faults::signs;
use crate::faults::stage::Stage;

/// How often a caller's VM left a host alone.
const LEFT: &str = "weir_failing_hosts_total";

pub(crate) const FAULT: Fault = Fault {
    name: "poison-key",
    expectation: Expectation::capacity_remains(
        "a key that no host can serve fails alone: nobody else's request does, and no host is left for it",
    ),
    own: None,
    full: Length::full(10, 30, 10),
    short: Some(Length::short(2, 5, 2)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    // As many as all others, at one caller, so that they are most of what it sends to any host.
    let rate = stage.length().rate;
    let before = left(stage);
    stage.also(rate, Duration::from_millis(1), Manner::Poison, 1)?;
    stage.harm()?;
    let after = left(stage);
    ensure!(after >= before, "a caller's sidecar was restarted");
    stage.measured("hosts left alone", (after - before) as f64, "", Some(0.0));
    Ok(())
}

/// By all callers so far.
fn left(stage: &mut Stage<'_>) -> u64 {
    let callers = stage.mesh().callers().iter();
    let left = callers.filter_map(|caller| signs::figure(caller.admin, LEFT));
    left.sum()
}
