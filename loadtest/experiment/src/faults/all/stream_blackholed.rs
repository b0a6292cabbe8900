// SPDX-License-Identifier: Apache-2.0
//! The callers' streams to weir-control stay open and no byte passes: its sidecar is frozen.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use nix::sys::signal::Signal;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::signs;
use crate::faults::stage::Stage;

/// Signs of life are asked for every 5 s, and awaited for 2 s; at each of two links one behind the other. The rest
/// is until it is told.
const NOTICED: f64 = 10.0;

pub(crate) const FAULT: Fault = Fault {
    name: "stream-blackholed",
    expectation: Expectation::nothing_fails(
        "nothing fails, and callers know within 10 s that their stream is dead",
    ),
    own: None,
    full: Length::full(10, 30, 20),
    short: Some(Length::short(2, 10, 3)),
    run: |stage| freeze(stage, "weir-control-sidecar"),
    known_gap: None,
};

/// Freezes a process on the way to weir-control, and thaws it.
pub(super) fn freeze(stage: &mut Stage<'_>, process: &str) -> Result<()> {
    stage.mesh().processes().signal(process, Signal::SIGSTOP)?;
    let began = Instant::now();
    let mut noticed = None;
    let harmed = stage.harm_with(|stage| {
        if noticed.is_none() && signs::connected(stage.mesh()) == 0 {
            noticed = Some(began.elapsed());
        }
        Ok(())
    });
    // It is thawed whatever came of it: a frozen process does not end.
    stage.mesh().processes().signal(process, Signal::SIGCONT)?;
    harmed?;
    let noticed = noticed.context("no caller has noticed")?;
    stage.measured("noticed after", noticed.as_secs_f64(), "s", Some(NOTICED));
    back(stage)
}

/// Waits until all callers have a stream and a fresh table again.
pub(super) fn back(stage: &mut Stage<'_>) -> Result<()> {
    let (_, took): ((), Duration) = stage.until("streams and tables again", |mesh| {
        let whole = signs::connected(mesh) == mesh.callers().len() && signs::stale(mesh) == 0;
        whole.then_some(())
    })?;
    stage.measured("fresh tables again after", took.as_secs_f64(), "s", None);
    Ok(())
}
