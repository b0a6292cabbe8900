// SPDX-License-Identifier: Apache-2.0
//! A host answers 500 at once to everything: a black hole that looks idle.

use std::fs;
use std::time::Duration;

use anyhow::Result;

use crate::fault::{Expectation, Fault, Length};
use crate::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "host-failing",
    expectation: Expectation {
        sentence: "a host that fails fast gets under 2 % of the requests from 2 s on; what it gets before that fails",
        // Half of the requests for 2 s of the 13 s of the short form are 8 %, and 2 % for the rest of the harm. What is
        // to be shown is the share.
        important: 85.0,
        low: 85.0,
    },
    own: None,
    full: Length::full(10, 30, 20),
    short: Some(Length::short(3, 5, 5)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let host = stage.busiest()?;
    stage.share(&host, Duration::from_secs(2), Some(2.0));
    let told = stage.told(&host, "failing");
    fs::write(&told, "")?;
    stage.harm()?;
    Ok(fs::remove_file(&told)?)
}
