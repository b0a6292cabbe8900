// SPDX-License-Identifier: Apache-2.0
//! Requests go where the filter chose.

use anyhow::{Result, ensure};
use weir_mesh::Mesh;

use crate::load::choice;
use crate::stage::{Act, Scenario};
use crate::waits::{explained, until, until_up};

pub(crate) const SCENARIOS: &[Scenario] = &[
    (
        "requests_for_a_key_stay_at_the_host_that_has_it_cached_and_explain_agrees",
        Act::Shared(keys_stay),
    ),
    (
        "requests_for_many_keys_go_to_all_hosts",
        Act::Shared(all_hosts_serve),
    ),
];

/// Envoy's own policy would spread them: that ten of ten go to one of three hosts by chance is 1 in 20,000.
pub(crate) fn keys_stay(mesh: &mut Mesh) -> Result<()> {
    let callers = mesh.callers().to_vec();
    let (first, _) = choice(&callers[0], "stays")?;
    // Now it is cached there, and all are told.
    until(mesh, "the key at the host that fetched it", |mesh| {
        (explained(mesh, "stays").ok()? == first).then_some(())
    })?;
    for caller in &callers {
        until(mesh, "the table with the key", |_| {
            let (_, reason) = choice(caller, "stays").ok()?;
            (reason == "known_cached").then_some(())
        })?;
        for _ in 0..5 {
            let (host, reason) = choice(caller, "stays")?;
            ensure!(
                host == first,
                "{} sent it to {host} ({reason}), not to {first}",
                caller.name
            );
        }
    }
    let known = mesh.hosts().iter().any(|host| host.address == first);
    ensure!(known, "{first} is no sidecar's address");
    Ok(())
}

fn all_hosts_serve(mesh: &mut Mesh) -> Result<()> {
    let caller = mesh.callers()[0].clone();
    let all: Vec<_> = mesh.hosts().iter().map(|host| host.address).collect();
    until_up(mesh, "the table with all hosts", all.clone())?;
    // A caller is informed by any table, perhaps by the one before.
    for host in &all {
        let mut number = 0;
        until(mesh, "the table with each host", |_| {
            number += 1;
            let (chosen, reason) = choice(&caller, &format!("first-{number}")).ok()?;
            (chosen == *host && !reason.ends_with("_table")).then_some(())
        })?;
    }
    let mut unseen = all;
    for number in 0..300 {
        let (host, _) = choice(&caller, &format!("many-{number}"))?;
        unseen.retain(|other| *other != host);
    }
    ensure!(unseen.is_empty(), "{unseen:?} got nothing");
    Ok(())
}
