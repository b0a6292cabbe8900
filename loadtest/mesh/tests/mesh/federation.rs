// SPDX-License-Identifier: Apache-2.0
//! Callers in another datacenter than their hosts.

use std::net::SocketAddr;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use weir_mesh::{DATACENTER, FAR_CALLERS, FRONTS, Far, HOSTS, Mesh, Plan, Programs};
use weir_stage::http;

use crate::choices::keys_stay;
use crate::load::{Load, choice, send};
use crate::stage::{Act, Scenario};
use crate::waits::until;

pub(crate) const SCENARIOS: &[Scenario] = &[(
    "hosts_of_another_datacenter_are_chosen_directly_and_by_a_front_but_not_through_mesh_gateways",
    Act::Alone(another_datacenter),
)];

fn another_datacenter(programs: &Programs) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let plan = Plan {
        callers: 1,
        prometheus: false,
        ..Plan::default()
    };
    let mut mesh = Mesh::up(&plan, programs, folder.path())?;
    let far = mesh.add_datacenter("dc2")?;

    keys_stay(&mut mesh)?;
    let said = checked(&mesh, programs, FAR_CALLERS)?;
    ensure!(said.status.success(), "{said:?}");

    let load = Load::start(&mesh);
    mesh.reach_through_gateways()?;
    through_gateways(&mut mesh, &far)?;
    load.end_without_failure()?;
    let said = checked(&mesh, programs, FAR_CALLERS)?;
    let text = String::from_utf8_lossy(&said.stdout);
    ensure!(
        !said.status.success() && text.contains("NOBODY FOLLOWS"),
        "{text}"
    );

    by_a_front(&mut mesh, &far)?;
    let said = checked(&mesh, programs, FRONTS)?;
    ensure!(said.status.success(), "{said:?}");
    Ok(())
}

/// Every request is answered, by whatever host the gateway sends it to: none is named to the caller's Envoy.
fn through_gateways(mesh: &mut Mesh, far: &Far) -> Result<()> {
    let hosts: Vec<_> = mesh.hosts().iter().map(|host| host.address).collect();
    until(mesh, "the gateway in place of the hosts", |_| {
        let (answered, _) = choice(&far.caller, "gateway").ok()?;
        (!hosts.contains(&answered)).then_some(())
    })?;
    for number in 0..30 {
        let (answered, reason) = choice(&far.caller, &format!("gateway-{number}"))?;
        ensure!(!hosts.contains(&answered), "{answered} ({reason})");
    }
    until(mesh, "the filter's word that nobody follows", |_| {
        let page = http::get(far.caller.admin, "/stats/prometheus").ok()?;
        let counter = "weir_choices_ignored_total{";
        let line = page.body.lines().find(|line| line.starts_with(counter))?;
        (!line.ends_with(" 0")).then_some(())
    })
}

/// The front chooses, and says so last.
fn by_a_front(mesh: &mut Mesh, far: &Far) -> Result<()> {
    let caller = mesh.callers()[0].clone();
    let (first, _) = choice(&caller, "stays")?;
    until(mesh, "the front's table with the key", |_| {
        let answer = send(far.front, "stays").ok()?;
        (answer.header("x-weir-reason")? == "known_cached").then_some(())
    })?;
    for _ in 0..10 {
        let answer = send(far.front, "stays")?;
        ensure!(answer.status == "200", "status {}", answer.status);
        let host = answer.header("x-weir-host").context("no x-weir-host")?;
        ensure!(host.parse::<SocketAddr>()? == first, "{host}, not {first}");
    }
    Ok(())
}

/// What `weirctl consul check` says of callers.
fn checked(mesh: &Mesh, programs: &Programs, callers: &str) -> Result<Output> {
    let mut command = Command::new(programs.control.with_file_name("weirctl"));
    command
        .args(["consul", "check", "--service", HOSTS, "--caller", callers])
        .args(["--datacenter", DATACENTER, "--module"])
        .arg(&programs.filter)
        .arg("--settings")
        .arg(mesh.folder().join("settings.json"))
        .env("CONSUL_HTTP_ADDR", mesh.consul().http().to_string());
    std::fs::write(mesh.folder().join("settings.json"), "{\"debug\": true}")?;
    command
        .output()
        .context("weirctl, which `cargo build -p weirctl` makes")
}
