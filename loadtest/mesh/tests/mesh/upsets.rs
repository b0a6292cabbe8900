// SPDX-License-Identifier: Apache-2.0
//! Disks that are full and clocks that are wrong really are, and nobody dies of it.

use std::net::SocketAddr;

use anyhow::{Context, Result};
use weir_mesh::{Mesh, Plan, Programs};
use weir_stage::http;

use crate::load::{Load, choice};
use crate::stage::{Act, Scenario};
use crate::waits::until;

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "full_disks_and_a_clock_that_is_an_hour_ahead_and_put_right_fail_no_request",
    Act::Alone(disks_and_clocks),
)];

fn disks_and_clocks(programs: &Programs) -> Result<()> {
    if let Err(error) = weir_mesh::small_disks_possible() {
        eprintln!("SKIPPED: {error:#}");
        return Ok(());
    }
    let plan = Plan {
        hosts: 2,
        callers: 1,
        prometheus: false,
        small_disks: true,
        own_clocks: true,
        ..Plan::default()
    };
    let folder = tempfile::tempdir()?;
    let mut mesh = Mesh::up(&plan, programs, folder.path())?;
    let load = Load::start(&mesh);
    let names = ["weir-control", "rules-1", "rules-2", "caller-1-sidecar"];
    for name in names {
        mesh.fill_disk(name)?;
    }
    until(&mut mesh, "a line of the access log that is lost", |mesh| {
        (of_caller(mesh, "filesystem.write_failed").ok()? > 0).then_some(())
    })?;
    for name in names {
        mesh.free_disk(name)?;
    }
    for seconds in [3600, 0] {
        for name in ["weir-control", "caller-1"] {
            mesh.step_clock(name, seconds)?;
        }
        let ahead = seconds > 0;
        until(&mut mesh, "the other hour at the caller", |mesh| {
            let (caller, host) = (mesh.callers()[0].admin, mesh.hosts()[0].admin);
            ((hour(caller).ok()? != hour(host).ok()?) == ahead).then_some(())
        })?;
        a_table_decides(&mut mesh)?;
    }
    load.end_without_failure()
}

fn of_caller(mesh: &Mesh, name: &str) -> Result<u64> {
    let page = http::get(mesh.callers()[0].admin, &format!("/stats?filter=^{name}$"))?;
    let value = page.body.trim().rsplit(' ').next();
    Ok(value.context("a value")?.parse()?)
}

/// Of the day, where an Envoy is: `Sun, 22 Nov 2026 04:34:53 GMT`.
fn hour(admin: SocketAddr) -> Result<String> {
    let answer = http::get(admin, "/ready")?;
    let date = answer.header("date").context("no date")?;
    Ok(date.get(17..19).context("an hour")?.to_owned())
}

/// Fifty choices in a row, of which each is by a table that is fresh.
fn a_table_decides(mesh: &mut Mesh) -> Result<()> {
    let caller = mesh.callers()[0].clone();
    let mut row = 0;
    until(mesh, "choices by a table", |_| {
        let (_, reason) = choice(&caller, "clock").ok()?;
        row = if reason.ends_with("_table") {
            0
        } else {
            row + 1
        };
        (row == 50).then_some(())
    })
}
