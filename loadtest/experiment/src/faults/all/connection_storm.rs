// SPDX-License-Identifier: Apache-2.0
//! A thousand new connections a second at one caller.

use std::time::Duration;

use anyhow::Result;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::load::Manner;
use crate::faults::stage::Stage;

/// Of the steady load in the full form: 1,000 a second.
const TIMES: u32 = 5;

pub(crate) const FAULT: Fault = Fault {
    name: "connection-storm",
    expectation: Expectation::capacity_remains(
        "1,000 new connections a second at one caller (300 in the short form) fail nothing of the other caller",
    ),
    own: None,
    full: Length::full(5, 30, 5),
    short: Some(Length::short(1, 4, 1)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let rate = TIMES * stage.length().rate;
    stage.set_apart(1);
    stage.also(rate, Duration::from_millis(1), Manner::Fresh, 1)?;
    stage.harm()
}
