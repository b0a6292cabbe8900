// SPDX-License-Identifier: Apache-2.0
//! Of two weir-controls the one that leads is killed, and comes back.

use anyhow::{Context, Result};
use weir_mesh::{Control, Plan, Programs};

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::signs::{self, Watch};
use crate::faults::stage::Stage;

/// Consul's own floor is about 20 s: twice the shortest TTL of a session.
const TAKEN_OVER: f64 = 25.0;

pub(crate) const FAULT: Fault = Fault {
    name: "leader-killed",
    expectation: Expectation::nothing_fails(
        "nothing fails, callers have tables of the other one within 25 s, and none accepts an older table",
    ),
    own: Some(two),
    full: Length::full(10, 40, 20),
    short: None,
    run,
    known_gap: None,
};

/// A mesh with two weir-controls.
pub(super) fn two(plan: &mut Plan, _: &mut Programs) -> Result<()> {
    plan.controls = 2;
    Ok(())
}

fn run(stage: &mut Stage<'_>) -> Result<()> {
    lose_leader(
        stage,
        TAKEN_OVER,
        |stage, leader| stage.mesh().processes().kill(&leader.name),
        |stage, leader| stage.mesh().processes().again(&leader.name).map(drop),
    )
}

/// What is done to a leader.
pub(super) type Harm = fn(&mut Stage<'_>, &Control) -> Result<()>;

/// Takes the leader away and gives it back, and measures how long callers were without.
pub(super) fn lose_leader(
    stage: &mut Stage<'_>,
    at_most: f64,
    harm: Harm,
    undo: Harm,
) -> Result<()> {
    let (leader, _) = stage.until("a leader", signs::leader)?;
    stage.until("fresh tables at all callers", |mesh| {
        (signs::stale(mesh) == 0).then_some(())
    })?;
    let others = stage.mesh().controls().to_vec();
    let others: Vec<_> = others
        .into_iter()
        .filter(|control| *control != leader)
        .collect();
    let mut watch = Watch::begin(stage.mesh());
    harm(stage, &leader)?;
    let harmed = stage.harm_with(|stage| {
        watch.look(stage.mesh(), &others);
        Ok(())
    });
    // Whatever came of it: a frozen process does not end.
    undo(stage, &leader)?;
    harmed?;
    let fresh = watch
        .fresh
        .context("no table of another weir-control came")?;
    stage.measured(
        "tables of the other one after",
        fresh.as_secs_f64(),
        "s",
        Some(at_most),
    );
    stage.measured("tables too old for", watch.stale.as_secs_f64(), "s", None);
    // The old one is back: nobody may listen to what it knew.
    stage.until("one leader", |mesh| {
        let roles = mesh.controls().iter().map(|control| control.role());
        let mut roles: Vec<_> = roles.collect::<Option<_>>()?;
        roles.sort();
        (roles == ["following", "leading"]).then_some(())
    })?;
    let all = stage.mesh().controls().to_vec();
    watch.look(stage.mesh(), &all);
    let back = f64::from(watch.back);
    stage.measured("older tables accepted", back, "", Some(0.0));
    Ok(())
}
