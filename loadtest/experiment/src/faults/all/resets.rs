// SPDX-License-Identifier: Apache-2.0
//! Four times a second a connection of a caller to a host is reset, while the hosts have cores to spare.

use std::net::SocketAddr;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use weir_mesh::{HOSTS, Mesh};

use crate::faults::fault::{Expectation, Fault, Gap, Length};
use crate::faults::signs;
use crate::faults::stage::Stage;

const EVERY: Duration = Duration::from_millis(250);

pub(crate) const FAULT: Fault = Fault {
    name: "resets",
    expectation: Expectation::capacity_remains(
        "nothing is shed: hosts that reset connections are not full; what was on its way on a connection fails with it",
    ),
    own: Some(|plan, _| {
        plan.cluster = json!({"policy": {"overload": "dagor"}});
        Ok(())
    }),
    full: Length::full(10, 60, 20),
    short: Some(Length::short(2, 8, 2)),
    run,
    known_gap: Some(Gap {
        why: "a request whose connection ends after it was passed on is not sent again: its work may have begun",
        least: 90.0,
        by_time: false,
        excuses_figures: false,
    }),
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let hosts: Vec<SocketAddr> = stage
        .mesh()
        .hosts()
        .iter()
        .map(|host| host.address)
        .collect();
    let (mut next, mut number, mut reset) = (Instant::now(), 0, 0);
    stage.harm_with(|_| {
        if Instant::now() < next {
            return Ok(());
        }
        next += EVERY;
        number += 1;
        reset += u32::from(reset_one(hosts[number % hosts.len()], number)?);
        Ok(())
    })?;
    ensure!(reset > 0, "no connection was reset");
    stage.measured("connections reset", f64::from(reset), "", None);
    let shed = shed(stage.mesh()).context("weir-control's count of refusals")?;
    stage.measured("shed", shed as f64, "requests", Some(0.0));
    Ok(())
}

/// Ends one of the connections to a host; whether there was one.
fn reset_one(host: SocketAddr, number: usize) -> Result<bool> {
    let (address, port) = (host.ip().to_string(), host.port().to_string());
    let to = ["dst", &address, "dport", "=", &port];
    let list = ss(&["-Htn", "state", "established"], &to)?;
    let connections: Vec<&str> = list.lines().collect();
    let Some(connection) = connections.get(number % connections.len().max(1)) else {
        return Ok(false);
    };
    let local = connection.split_whitespace().nth(2);
    let port = local.and_then(|local| local.rsplit_once(':'));
    let (_, port) = port.with_context(|| format!("ss wrote {connection:?}"))?;
    ss(&["-HtnK", "state", "established", "sport", "=", port], &to)?;
    Ok(true)
}

/// iproute2's list of sockets, which also ends them for root (INET_DIAG_DESTROY).
fn ss(flags: &[&str], to: &[&str]) -> Result<String> {
    let output = Command::new("ss").args(flags).args(to).output();
    let output = output.context("ss, of the package iproute2")?;
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

fn shed(mesh: &Mesh) -> Option<u64> {
    signs::sum_of_control(
        mesh.control(),
        &format!("weir_control_shed_total{{cluster=\"{HOSTS}\""),
    )
}
