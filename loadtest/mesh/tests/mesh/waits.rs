// SPDX-License-Identifier: Apache-2.0
//! What tests wait for.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use weir_mesh::{HOSTS, Mesh};
use weir_stage::{control, http};

/// Generous: what takes seconds here may take ten times as long on a busy machine.
pub(crate) const LIMIT: Duration = Duration::from_secs(60);

/// The sidecars' addresses of the hosts that weir-control takes for up, as it tells on `/tables`.
pub(crate) fn up(mesh: &Mesh) -> Result<Vec<SocketAddr>> {
    control::hosts_up(mesh.control().admin, HOSTS)
}

/// The host that `/explain` ranks first for a key.
pub(crate) fn explained(mesh: &Mesh, key: &str) -> Result<SocketAddr> {
    let path = format!("/explain?cluster={HOSTS}&key={key}&priority=low");
    let page = http::get(mesh.control().admin, &path)?;
    let explained: Value = serde_json::from_str(&page.body)?;
    let first = explained
        .pointer("/ranked/0/address")
        .and_then(Value::as_str);
    Ok(first
        .with_context(|| format!("no host in {}", page.body))?
        .parse()?)
}

/// Waits until weir-control takes exactly these hosts for up.
pub(crate) fn until_up(mesh: &mut Mesh, what: &str, mut expected: Vec<SocketAddr>) -> Result<()> {
    expected.sort();
    until(mesh, what, |mesh| {
        let mut up = up(mesh).ok()?;
        up.sort();
        (up == expected).then_some(())
    })
}

/// Waits until `look` finds something, while the mesh's processes live.
pub(crate) fn until<T>(
    mesh: &mut Mesh,
    what: &str,
    mut look: impl FnMut(&Mesh) -> Option<T>,
) -> Result<T> {
    let mut found = None;
    let started = std::time::Instant::now();
    while found.is_none() {
        found = look(mesh);
        mesh.processes().check()?;
        anyhow::ensure!(started.elapsed() < LIMIT, "{what} did not happen");
        std::thread::sleep(Duration::from_millis(50));
    }
    found.context("nothing")
}
