// SPDX-License-Identifier: Apache-2.0
//! A caller's application leaves in the middle of half of its requests.

use std::time::Duration;

use anyhow::Result;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::load::Manner;
use crate::faults::stage::Stage;

/// Of a request: more than twice as long as its client waits.
const RUN: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_millis(20);

pub(crate) const FAULT: Fault = Fault {
    name: "caller-disconnects",
    expectation: Expectation::capacity_remains(
        "nobody else's request fails, and what was abandoned is counted as under way by nobody",
    ),
    own: None,
    full: Length::full(5, 30, 10),
    short: Some(Length::short(1, 4, 1)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let rate = stage.length().rate / 4;
    stage.also(rate, RUN, Manner::Abandons(PATIENCE), 1)?;
    stage.harm()
}
