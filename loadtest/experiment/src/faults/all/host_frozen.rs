// SPDX-License-Identifier: Apache-2.0
//! A host and its sidecar are frozen: connections stay, nothing is answered.

use std::time::Duration;

use anyhow::Result;
use nix::sys::signal::Signal;
use weir_mesh::Host;

use crate::faults::fault::{Expectation, Fault, Gap, Length};
use crate::faults::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "host-frozen",
    expectation: Expectation::capacity_remains(
        "the frozen host gets nothing new from 2 s on; what it had is answered late or, after the 15 s of the route's \
         time-out, fails",
    ),
    own: None,
    full: Length::full(10, 30, 20),
    short: Some(Length::short(2, 5, 3)),
    run,
    known_gap: Some(Gap {
        why: "each idle connection that a caller's sidecar has to the frozen host takes one request; only when they are used \
         up a new connection is tried, which times out after 1 s, and the host is left alone. After a burst there are \
         hundreds. See host-frozen-hedged",
        least: 90.0,
        by_time: false,
        excuses_figures: true,
    }),
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let host = stage.busiest()?;
    stage.share(&host, Duration::from_secs(2), Some(2.0));
    freeze(stage, &host)
}

pub(super) fn freeze(stage: &mut Stage<'_>, host: &Host) -> Result<()> {
    stage.signal(host, Signal::SIGSTOP)?;
    stage.harm()?;
    stage.signal(host, Signal::SIGCONT)
}
