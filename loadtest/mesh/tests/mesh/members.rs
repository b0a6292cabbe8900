// SPDX-License-Identifier: Apache-2.0
//! Hosts come, go and fail.

use anyhow::Result;
use weir_mesh::Mesh;

use crate::load::{Load, choice};
use crate::stage::{Act, Scenario};
use crate::waits::{until, until_up};

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "a_host_that_fails_is_out_of_the_table_and_comes_back",
        Act::Shared(a_host_fails),
    ),
    (
        "a_new_host_gets_requests_and_one_that_leaves_gets_none",
        Act::Shared(a_host_joins_and_leaves),
    ),
];

fn addresses(mesh: &Mesh) -> Vec<std::net::SocketAddr> {
    mesh.hosts().iter().map(|host| host.address).collect()
}

fn a_host_fails(mesh: &mut Mesh) -> Result<()> {
    let host = mesh.hosts()[0].clone();
    let all = addresses(mesh);
    let others = all.iter().copied().filter(|other| *other != host.address);
    let others: Vec<_> = others.collect();
    mesh.processes().kill(&host.name)?;
    until_up(mesh, "the failed host out of the table", others)?;
    mesh.processes().again(&host.name)?;
    until_up(mesh, "the host in the table again", all)
}

fn a_host_joins_and_leaves(mesh: &mut Mesh) -> Result<()> {
    let before = addresses(mesh);
    let load = Load::start(mesh);
    let host = mesh.add_host()?;
    let caller = mesh.callers()[0].clone();
    let mut number = 0;
    until(mesh, "a request at the new host", |_| {
        number += 1;
        let (chosen, reason) = choice(&caller, &format!("join-{number}")).ok()?;
        (chosen == host.address && !reason.ends_with("_table")).then_some(())
    })?;
    mesh.remove_host(&host.name)?;
    load.end_without_failure()?;
    until_up(mesh, "the old hosts alone", before)
}
