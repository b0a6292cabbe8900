// SPDX-License-Identifier: Apache-2.0
//! The Prometheus that all figures come from is killed and comes back.

use anyhow::Result;
use serde_json::{Value, json};
use weir_mesh::{HOSTS, Mesh};
use weir_stage::http;

use crate::fault::{Expectation, Fault, Length};
use crate::stage::Stage;

pub(crate) const FAULT: Fault = Fault {
    name: "prometheus-killed",
    expectation: Expectation {
        sentence: "nothing fails: figures grow stale and do not count any more, tables and cache contents go on",
        important: 100.0,
        low: 100.0,
    },
    own: Some(|plan, _| {
        plan.prometheus = true;
        Ok(())
    }),
    full: Length::full(10, 30, 20),
    short: Some(Length::short(2, 8, 2)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let address = stage.mesh().prometheus();
    let address = address.map(|address| format!("http://{address}"));
    // Its only source: the hosts' own pages are not read by weir-control any more.
    let cluster = json!({"scrape": null, "prometheus": {"address": address}});
    stage.mesh().tell_controls(cluster)?;
    stage.until("figures from Prometheus", |mesh| {
        let from = figures(mesh)?;
        from.iter()
            .all(|(from, _)| from == "prometheus")
            .then_some(())
    })?;
    stage.mesh().processes().kill("prometheus")?;
    let mut oldest = 0;
    stage.harm_with(|stage| {
        let ages = figures(stage.mesh()).unwrap_or_default();
        oldest = ages
            .iter()
            .map(|(_, age)| *age)
            .max()
            .unwrap_or(0)
            .max(oldest);
        Ok(())
    })?;
    stage.measured("oldest figures of a host", oldest as f64 / 1e3, "s", None);
    stage.mesh().processes().again("prometheus")?;
    let (_, took) = stage.until("fresh figures again", |mesh| {
        let fresh = |(_, age): &(String, u64)| *age < 5_000;
        figures(mesh)?.iter().all(fresh).then_some(())
    })?;
    stage.measured("figures fresh again after", took.as_secs_f64(), "s", None);
    Ok(())
}

/// Of each host: where its load is from, and how old it is in milliseconds.
fn figures(mesh: &Mesh) -> Option<Vec<(String, u64)>> {
    let page = http::get(mesh.control().admin, "/tables").ok()?;
    let tables: Value = serde_json::from_str(&page.body).ok()?;
    let hosts = tables.pointer(&format!("/clusters/{HOSTS}/hosts"))?;
    let figure = |host: &Value| {
        let from = host["load"]["from"].as_str()?.to_owned();
        Some((from, host["load"]["age_ms"].as_u64()?))
    };
    hosts.as_array()?.iter().map(figure).collect()
}
