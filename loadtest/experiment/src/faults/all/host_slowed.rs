// SPDX-License-Identifier: Apache-2.0
//! A host runs everything three times as long. EMULATED as its work is.

use std::fs;
use std::time::Duration;

use anyhow::Result;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "host-slowed",
    expectation: Expectation::capacity_remains(
        "nothing fails; keys that the slowed host has cached go elsewhere where waiting there costs more than fetching",
    ),
    own: None,
    full: Length::full(10, 30, 10),
    short: Some(Length::short(2, 5, 2)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let host = stage.busiest()?;
    stage.share(&host, Duration::from_secs(2), None);
    let told = stage.told(&host, "slowness");
    fs::write(&told, "3")?;
    stage.harm()?;
    Ok(fs::remove_file(&told)?)
}
