// SPDX-License-Identifier: Apache-2.0
//! Hosts with network namespaces of their own.

use std::process::Command;
use std::time::Duration;

use anyhow::{Result, ensure};
use weir_mesh::{Mesh, Plan, Programs};

use crate::load::send;
use crate::stage::{Act, Scenario};
use crate::waits::{until, until_up};

const TEST: &str = "a_host_whose_link_is_cut_is_out_of_the_table_until_it_is_mended";
pub(crate) const SCENARIOS: &[Scenario] = &[(TEST, Act::Namespaces(a_link_is_cut))];

fn a_link_is_cut(programs: &Programs) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let plan = Plan {
        netns: true,
        callers: 1,
        prometheus: false,
        ..Plan::default()
    };
    let mut mesh = Mesh::up(&plan, programs, folder.path())?;
    let all: Vec<_> = mesh.hosts().iter().map(|host| host.address).collect();
    let caller = mesh.callers()[0].clone();
    let name = mesh.hosts()[0].name.clone();
    mesh.cut(&name)?;
    until_up(&mut mesh, "the host out of the table", all[1..].to_vec())?;
    until(&mut mesh, "requests that find the others", |_| {
        let good = (0..20).all(|number| {
            send(caller.outbound, &format!("cut-{number}"))
                .is_ok_and(|answer| answer.status == "200")
        });
        good.then_some(())
    })?;
    mesh.mend(&name)?;
    until_up(&mut mesh, "the host in the table again", all)?;

    mesh.narrow(&name, 10_000_000)?;
    mesh.widen(&name)?;
    if let Err(error) = mesh.delay(&name, Duration::from_millis(1)) {
        let need = weir_needs::Need::Installed("tc");
        weir_needs::skip_test(TEST, need, format!("no link is delayed here: {error:#}"));
    }
    ensure!(mesh.cut("rules-99").is_err(), "there is no such host");
    drop(mesh);
    let names = Command::new("ip").args(["netns", "list"]).output()?;
    let names = String::from_utf8_lossy(&names.stdout).into_owned();
    let own = format!("weir-mesh-{}-", std::process::id());
    ensure!(!names.contains(&own), "left: {names}");
    Ok(())
}
