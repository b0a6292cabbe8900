// SPDX-License-Identifier: Apache-2.0
//! The Prometheus that weir-control reads is killed and comes back.

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use weir_mesh::{HOSTS, Mesh, Plan, Programs};
use weir_stage::http;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::signs;
use crate::faults::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "prometheus-killed",
    expectation: Expectation::nothing_fails(
        "nothing fails: tables go on with the figures that answers carry, and old ones do not count",
    ),
    own: Some(with_prometheus),
    full: Length::full(10, 30, 20),
    short: Some(Length::short(2, 8, 2)),
    run,
    known_gap: None,
};

/// A mesh whose Prometheus weir-control can read.
pub(super) fn with_prometheus(plan: &mut Plan, _: &mut Programs) -> Result<()> {
    plan.prometheus = true;
    Ok(())
}

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let address = stage.mesh().prometheus();
    let address = address.map(|address| format!("http://{address}"));
    // The hosts' own pages are not read by weir-control any more.
    let cluster = json!({"scrape": null, "prometheus": {"address": address}});
    stage.mesh().tell_controls(cluster)?;
    stage.until("figures from Prometheus", |mesh| {
        (answers(mesh)? > 0).then_some(())
    })?;
    stage.mesh().processes().kill("prometheus")?;
    let before = answers(stage.mesh()).context("weir-control's metrics")?;
    let mut oldest = 0;
    stage.harm_with(|stage| {
        oldest = oldest.max(oldest_ms(stage.mesh()).unwrap_or(0));
        Ok(())
    })?;
    let after = answers(stage.mesh()).context("weir-control's metrics")?;
    // One may have been on its way.
    ensure!(after <= before + 1, "somebody answered for Prometheus");
    stage.measured("oldest figures of a host", oldest as f64 / 1e3, "s", None);
    stage.mesh().processes().again("prometheus")?;
    let (_, took) = stage.until("figures from Prometheus again", |mesh| {
        (answers(mesh)? > after).then_some(())
    })?;
    stage.measured("asked again after", took.as_secs_f64(), "s", None);
    Ok(())
}

/// How often Prometheus has answered weir-control.
pub(super) fn answers(mesh: &Mesh) -> Option<u64> {
    let name = "weir_control_polls_total{source=\"prometheus\",result=\"ok\"}";
    signs::of_control(mesh.control(), name)
}

/// Age of the oldest figures of a host, wherever they are from: what answers carry is newer while requests go there.
fn oldest_ms(mesh: &Mesh) -> Option<u64> {
    let page = http::get(mesh.control().admin, "/tables").ok()?;
    let tables: Value = serde_json::from_str(&page.body).ok()?;
    let hosts = tables.pointer(&format!("/clusters/{HOSTS}/hosts"))?;
    let ages = hosts.as_array()?.iter();
    ages.filter_map(|host| host["age_ms"].as_u64()).max()
}
