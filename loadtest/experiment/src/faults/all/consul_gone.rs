// SPDX-License-Identifier: Apache-2.0
//! Consul's agent and server are killed, and come back.

use anyhow::Result;
use weir_mesh::HOSTS;

use crate::faults::fault::{Expectation, Fault, Gap, Length};
use crate::faults::signs;
use crate::faults::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "consul-gone",
    expectation: Expectation::nothing_fails(
        "nothing fails without any Consul: sidecars and weir-control go on with what they were told",
    ),
    own: None,
    full: Length::full(10, 60, 20),
    short: Some(Length::short(5, 5, 10)),
    run: |stage| lose(stage, &["consul", "consul-server"]),
    known_gap: Some(Gap {
        why: "all hosts of this mesh are registered at one agent, which takes them for critical until it has checked them \
         once after its start, whatever status they were registered with: for less than a second it may tell sidecars \
         that there is no host",
        least: 90.0,
        by_time: true,
        excuses_figures: true,
    }),
};

/// Kills processes of Consul, and starts them again.
pub(super) fn lose(stage: &mut Stage<'_>, processes: &[&str]) -> Result<()> {
    for process in processes {
        stage.mesh().processes().kill(process)?;
    }
    let mut stale = 0;
    stage.harm_with(|stage| {
        stale = stale.max(signs::stale(stage.mesh()));
        Ok(())
    })?;
    stage.measured(
        "callers whose table was too old",
        stale as f64,
        "",
        Some(0.0),
    );
    // The server first, and until it leads: an agent alone has nobody to join, and tells sidecars that there is
    // nothing.
    for process in processes.iter().rev() {
        stage.mesh().processes().again(process)?;
        if *process == "consul-server" {
            stage.until("Consul's leader", |mesh| {
                mesh.consul().leads().then_some(())
            })?;
        }
    }
    let (_, took) = stage.until("all hosts in Consul's catalog again", |mesh| {
        let passing = mesh.consul().passing(HOSTS).ok()?;
        (passing.len() == mesh.hosts().len()).then_some(())
    })?;
    stage.measured(
        "Consul's catalog whole again after",
        took.as_secs_f64(),
        "s",
        None,
    );
    Ok(())
}
