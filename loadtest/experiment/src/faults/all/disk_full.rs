// SPDX-License-Identifier: Apache-2.0
//! The disks are full that weir-control, hosts and sidecars log to.

use anyhow::{Result, ensure};
use weir_mesh::CONTROL;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::signs;
use crate::faults::stage::{Stage, sidecar};

pub(crate) const FAULT: Fault = Fault {
    name: "disk-full",
    expectation: Expectation::nothing_fails(
        "nothing fails and nobody dies: what cannot be written is lost",
    ),
    own: Some(|plan, _| {
        plan.small_disks = true;
        Ok(())
    }),
    full: Length::full(10, 30, 10),
    short: Some(Length::short(2, 5, 2)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let mesh = stage.mesh();
    let mut names = vec![CONTROL.to_owned(), sidecar(CONTROL)];
    for host in mesh.hosts() {
        names.extend([host.name.clone(), sidecar(&host.name)]);
    }
    names.extend(mesh.callers().iter().map(|caller| sidecar(&caller.name)));
    for name in &names {
        stage.mesh().fill_disk(name)?;
    }
    stage.harm()?;
    // The harm was real: a line that says so was lost.
    let caller = stage.mesh().callers()[0].admin;
    let lost = signs::figure(caller, "filesystem.write_failed").unwrap_or(0);
    ensure!(lost > 0, "no line was lost");
    stage.measured(
        "writes of a caller's sidecar that failed",
        lost as f64,
        "",
        None,
    );
    for name in &names {
        stage.mesh().free_disk(name)?;
    }
    Ok(())
}
