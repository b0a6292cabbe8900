// SPDX-License-Identifier: Apache-2.0
//! Hosts come, go and fail.

use anyhow::{Result, ensure};
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
        "a_host_whose_sidecar_fails_its_check_in_consul_is_out_of_the_table_though_its_application_answers",
        Act::Shared(a_sidecar_fails),
    ),
    (
        "a_host_that_is_deregistered_is_out_of_the_table_though_it_runs",
        Act::Shared(a_host_is_deregistered),
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
    let all = addresses(mesh);
    let host = mesh.hosts()[0].name.clone();
    mesh.processes().kill(&host)?;
    until_up(mesh, "the failed host out of the table", all[1..].to_vec())?;
    mesh.processes().again(&host)?;
    until_up(mesh, "the host in the table again", all)
}

fn a_sidecar_fails(mesh: &mut Mesh) -> Result<()> {
    let all = addresses(mesh);
    let sidecar = format!("{}-sidecar", mesh.hosts()[0].name);
    let caller = mesh.callers()[0].clone();
    // A key that goes there: it is cached there, and the caller knows.
    let key = until(mesh, "a key at the first host", |_| {
        let key = (0..50).map(|number| format!("there-{number}"));
        key.clone().find(|key| {
            choice(&caller, key)
                .is_ok_and(|(host, reason)| host == all[0] && reason == "known_cached")
        })
    })?;
    mesh.processes().kill(&sidecar)?;
    // Nobody was told yet; the next host of the list answers.
    let (host, reason) = choice(&caller, &key)?;
    ensure!(host != all[0], "{host} is dead ({reason})");
    until_up(
        mesh,
        "the critical host out of the table",
        all[1..].to_vec(),
    )?;
    mesh.processes().again(&sidecar)?;
    until_up(mesh, "the host in the table again", all)
}

fn a_host_is_deregistered(mesh: &mut Mesh) -> Result<()> {
    let all = addresses(mesh);
    let host = mesh.hosts()[0].name.clone();
    mesh.deregister(&host)?;
    until_up(mesh, "the host out of the table", all[1..].to_vec())?;
    mesh.register(&host)?;
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
