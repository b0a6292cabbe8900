// SPDX-License-Identifier: Apache-2.0
//! All weir-controls are killed, and come back after minutes.

use anyhow::Result;

use super::leader_killed::two;
use super::stream_blackholed::back;
use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "controls-gone",
    expectation: Expectation::nothing_fails(
        "not one of 100,000 fails without any weir-control: the last table goes on, without its load figures",
    ),
    own: Some(two),
    full: Length {
        rate: 320,
        ..Length::full(10, 300, 20)
    },
    short: Some(Length::short(2, 15, 3)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let names: Vec<_> = stage
        .mesh()
        .controls()
        .iter()
        .map(|control| control.name.clone())
        .collect();
    for name in &names {
        stage.mesh().processes().kill(name)?;
    }
    stage.harm()?;
    for name in &names {
        stage.mesh().processes().again(name)?;
    }
    back(stage)
}
