// SPDX-License-Identifier: Apache-2.0
//! A host answers 500 at once to everything: a black hole that looks idle.

use std::fs;
use std::time::Duration;

use anyhow::Result;

use crate::faults::fault::{Expectation, Fault, Gap, Length};
use crate::faults::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "host-failing",
    expectation: Expectation::capacity_remains(
        "a host that fails fast gets under 2 % of the requests from 2 s on; what it gets before that fails",
    ),
    own: None,
    full: Length::full(10, 30, 20),
    short: Some(Length::short(3, 5, 5)),
    run,
    known_gap: Some(Gap {
        why: "each worker of each caller loses five requests until it turns away, and one with each trial, of the \
              important ones two at most; nobody tries again what a host has answered",
        least: 93.0,
        by_time: false,
        excuses_figures: false,
    }),
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let host = stage.busiest()?;
    stage.share(&host, Duration::from_secs(2), Some(2.0));
    let told = stage.told(&host, "failing");
    fs::write(&told, "")?;
    stage.harm()?;
    Ok(fs::remove_file(&told)?)
}
