// SPDX-License-Identifier: Apache-2.0
//! All hosts say that they drain, and go on answering.

use anyhow::Result;
use serde_json::{Value, json};
use weir_mesh::HOSTS;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::signs;
use crate::faults::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "all-drain",
    expectation: Expectation::capacity_remains(
        "hosts that all say that they drain and answer still get the requests, and nothing fails",
    ),
    own: Some(|plan, _| {
        plan.cluster = drains(&[]);
        Ok(())
    }),
    full: Length::full(10, 30, 10),
    short: Some(Length::short(2, 5, 2)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let hosts = stage.mesh().hosts().iter();
    let rows: Vec<Value> = hosts
        .map(|host| json!({"address": host.address, "draining": true}))
        .collect();
    stage.mesh().tell_controls(drains(&rows))?;
    panics(stage, 1)?;
    stage.harm()?;
    stage.mesh().tell_controls(drains(&[]))?;
    panics(stage, 0)
}

/// The hosts that Consul names, these of them draining. A list that shrinks is meant to.
fn drains(hosts: &[Value]) -> Value {
    json!({"hosts": hosts, "shrink_after": "0s"})
}

/// Waits until weir-control says whether few hosts are left.
fn panics(stage: &mut Stage<'_>, wanted: u64) -> Result<()> {
    stage.until("weir_control_panic", |mesh| {
        let name = format!("weir_control_panic{{cluster=\"{HOSTS}\"}}");
        (signs::of_control(mesh.control(), &name)? == wanted).then_some(())
    })?;
    Ok(())
}
