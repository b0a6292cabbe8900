// SPDX-License-Identifier: Apache-2.0
//! The VM of the filter that holds the stream to weir-control panics every 10 s.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use weir_mesh::{Mesh, Plan, Programs};
use weir_stage::http::{self, Request};

use crate::crashing_filter;
use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::stage::Stage;

const EVERY: Duration = Duration::from_secs(10);

pub(crate) const FAULT: Fault = Fault {
    name: "owner-panics",
    expectation: Expectation::capacity_remains(
        "requests go on; a sidecar of Consul gets no new VM for one that panicked, so that choice is Envoy's own \
         when the last one is gone",
    ),
    own: Some(own),
    full: Length::full(10, 40, 10),
    short: Some(Length::short(2, 3, 2)),
    run,
    known_gap: None,
};

fn own(plan: &mut Plan, programs: &mut Programs) -> Result<()> {
    // A VM more than there are on the one thread of a sidecar.
    plan.caller_threads = 2;
    programs.filter = crashing_filter::build()?;
    Ok(())
}

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let mut next = Instant::now();
    let mut panics = 0;
    let before = streams(stage.mesh())?;
    stage.harm_with(|stage| {
        if Instant::now() < next {
            return Ok(());
        }
        next += EVERY;
        for caller in stage.mesh().callers().to_vec() {
            let request = Request {
                method: "GET",
                path: "/",
                headers: &[("x-weir-key", "panic"), ("x-weir-crash", "owner")],
                body: "",
            };
            let answer = http::send(caller.outbound, &request)?;
            ensure!(answer.status == "200", "told to panic: {}", answer.status);
            panics += 1;
        }
        Ok(())
    })?;
    stage.measured("told to panic", f64::from(panics), "times", None);
    let opened = streams(stage.mesh())? - before;
    ensure!(opened > 0, "no VM panicked: none has opened a stream since");
    stage.measured("streams opened since", opened as f64, "", None);
    Ok(())
}

/// Opened by all callers so far: a VM that takes over opens one.
fn streams(mesh: &Mesh) -> Result<u64> {
    let mut opened = 0;
    for caller in mesh.callers() {
        let page = http::get(
            caller.admin,
            "/stats?filter=weir_filter_streams_opened_total",
        )?;
        let value = page.body.trim().rsplit_once(' ').map(|(_, value)| value);
        opened += value.context("no count of streams")?.parse::<u64>()?;
    }
    Ok(opened)
}
