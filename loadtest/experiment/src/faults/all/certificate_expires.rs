// SPDX-License-Identifier: Apache-2.0
//! The certificate of the Prometheus that weir-control reads expires, and is renewed later.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use weir_mesh::{HOSTS, Mesh};
use weir_stage::http;

use super::prometheus_killed::{answers, with_prometheus};
use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::front::{Front, NAME};
use crate::faults::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "certificate-expires",
    expectation: Expectation::nothing_fails(
        "nothing fails: tables go on with the figures that answers carry, /tables says what has expired, and a renewed one is taken up",
    ),
    own: Some(with_prometheus),
    full: Length::full(10, 30, 20),
    short: Some(Length::short(2, 8, 2)),
    run,
    known_gap: None,
};

/// Far longer than it is played.
const GOOD: Duration = Duration::from_secs(24 * 3600);
/// What is left of its life when the harm begins.
const LEFT: Duration = Duration::from_secs(3);

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let prometheus = stage
        .mesh()
        .prometheus()
        .context("there is no Prometheus")?;
    let front = Front::start(prometheus, GOOD)?;
    let ca = stage.mesh().folder().join("front-ca.pem");
    std::fs::write(&ca, &front.authority)?;
    let address = format!("https://{NAME}:{}", front.address.port());
    // The hosts' own pages are not read by weir-control any more.
    let cluster = json!({"scrape": null, "prometheus": {"address": address, "ca": ca}});
    stage.mesh().tell_controls(cluster)?;
    stage.until("figures from Prometheus by HTTPS", |mesh| {
        (answers(mesh)? > 0).then_some(())
    })?;
    front.renew(LEFT)?;
    stage.until("the end of its certificate", |mesh| {
        complaint(mesh)?.contains("expired").then_some(())
    })?;
    let before = answers(stage.mesh()).context("weir-control's metrics")?;
    stage.harm()?;
    let after = answers(stage.mesh()).context("weir-control's metrics")?;
    // One may have been on its way.
    ensure!(after <= before + 1, "an expired certificate was believed");
    front.renew(GOOD)?;
    let (_, took) = stage.until("figures from Prometheus again", |mesh| {
        (answers(mesh)? > after).then_some(())
    })?;
    stage.measured("asked again after", took.as_secs_f64(), "s", None);
    Ok(())
}

/// What weir-control says of its Prometheus.
fn complaint(mesh: &Mesh) -> Option<String> {
    let page = http::get(mesh.control().admin, "/tables").ok()?;
    let tables: Value = serde_json::from_str(&page.body).ok()?;
    let source = tables.pointer(&format!("/clusters/{HOSTS}/sources/prometheus"))?;
    Some(source.to_string())
}
