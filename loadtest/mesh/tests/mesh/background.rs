// SPDX-License-Identifier: Apache-2.0
//! A mesh in the background, as `cargo xtask mesh` has it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use weir_mesh::{Plan, Programs, background};
use weir_stage::record::{self, Entry};

use crate::load::choice;
use crate::stage::{Act, Scenario};

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "a_second_mesh_is_refused_and_nothing_is_left_of_one_that_ends_or_is_killed",
    Act::Alone(up_and_down),
)];

/// The smallest there is.
fn small() -> Plan {
    Plan {
        hosts: 1,
        callers: 1,
        prometheus: false,
        ..Plan::default()
    }
}

fn up_and_down(programs: &Programs) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let folder = folder.path();
    let supervisor = Path::new(env!("CARGO_BIN_EXE_weir-mesh"));
    let mesh = background::up(supervisor, &small(), programs, folder, |_| ())?;
    choice(&mesh.callers[0], "any")?;
    let second = background::up(supervisor, &small(), programs, folder, |_| ());
    let refusal = second
        .err()
        .context("a second mesh was started")?
        .to_string();
    ensure!(refusal.contains(&mesh.supervisor.to_string()), "{refusal}");
    let before = recorded(folder)?;
    ensure!(before.len() == 7, "{before:?}");
    let ended = background::down(folder)?;
    ensure!(ended.supervisor == Some(mesh.supervisor), "{ended:?}");
    ensure!(ended.removed.is_empty(), "{ended:?}");
    nothing_lives(&before)?;

    let plan = Plan {
        netns: weir_mesh::namespaces_possible().is_ok(),
        ..small()
    };
    let mesh = background::up(supervisor, &plan, programs, folder, |_| ())?;
    let before = recorded(folder)?;
    let killed = Command::new("kill")
        .args(["-9", &mesh.supervisor.to_string()])
        .status()?;
    ensure!(killed.success(), "the supervisor could not be killed");
    let ended = background::down(folder)?;
    nothing_lives(&before)?;
    let namespace = format!("weir-mesh-{}-rules-1", mesh.supervisor);
    ensure!(
        ended.removed.contains(&namespace) == plan.netns,
        "{ended:?}"
    );
    let ended = background::down(folder)?;
    ensure!(
        (ended.supervisor, ended.processes) == (None, 0),
        "{ended:?}"
    );
    Ok(())
}

fn recorded(folder: &Path) -> Result<Vec<Entry>> {
    record::read(&folder.join("processes.json"))
}

fn nothing_lives(before: &[Entry]) -> Result<()> {
    let left: Vec<_> = before.iter().filter(|entry| entry.lives()).collect();
    ensure!(left.is_empty(), "left: {left:?}");
    Ok(())
}
