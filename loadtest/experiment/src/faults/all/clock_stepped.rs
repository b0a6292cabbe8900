// SPDX-License-Identifier: Apache-2.0
//! The clocks of weir-control and of a caller's sidecar are stepped one after the other: an hour forward, and back.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use weir_mesh::CONTROL;
use weir_stage::http;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::signs;
use crate::faults::stage::Stage;

const HOUR: i64 = 3600;
/// Two clocks, forward and back.
const STEPS: u32 = 4;

pub(crate) const FAULT: Fault = Fault {
    name: "clock-stepped",
    expectation: Expectation::nothing_fails(
        "nothing fails, and tables count as fresh at every hour",
    ),
    own: Some(|plan, _| {
        plan.own_clocks = true;
        Ok(())
    }),
    full: Length::full(10, 60, 10),
    short: Some(Length::short(2, 8, 2)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let caller = stage.mesh().callers()[0].clone();
    let part = stage.length().harm / STEPS;
    let (mut stale, mut parts) = (0, 0);
    let mut until = Duration::ZERO;
    let began = std::time::Instant::now();
    stage.harm_with(|stage| {
        if parts < STEPS && began.elapsed() >= until {
            let name = if parts < 2 { CONTROL } else { &caller.name };
            let seconds = if parts.is_multiple_of(2) { HOUR } else { 0 };
            stage.mesh().step_clock(name, seconds)?;
            parts += 1;
            until += part;
            if parts == 3 {
                let (there, here) = (hour(caller.admin)?, hour(stage.host(0).admin)?);
                ensure!(there != here, "the caller's clock was not stepped");
            }
        }
        stale = stale.max(signs::stale(stage.mesh()));
        Ok(())
    })?;
    ensure!(parts == STEPS, "only {parts} steps of {STEPS}");
    stage.measured(
        "callers whose table was too old",
        stale as f64,
        "",
        Some(0.0),
    );
    Ok(())
}

/// Of the day, where an Envoy is: `Sun, 22 Nov 2026 04:34:53 GMT`.
fn hour(admin: std::net::SocketAddr) -> Result<String> {
    let answer = http::get(admin, "/ready")?;
    let date = answer.header("date").context("no date")?;
    Ok(date.get(17..19).context("an hour")?.to_owned())
}
