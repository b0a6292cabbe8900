// SPDX-License-Identifier: Apache-2.0
//! A policy on trial for some keys is a plan that brings them all to one slow host.

use std::fmt::Write as _;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::json;
use weir_mesh::HOSTS;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::load::KEYS;
use crate::faults::signs;
use crate::faults::stage::Stage;

/// Of the keys. What they ask for is less than the slow host can do, so that they take long, and nothing fails.
const SHARE: &str = "30%";
/// A policy that does harm is withdrawn within this.
const AT_MOST_S: f64 = 30.0;
/// Callers have the news by then.
const SPREAD: Duration = Duration::from_secs(3);

pub(crate) const FAULT: Fault = Fault {
    name: "bad-policy",
    expectation: Expectation::capacity_remains(
        "nothing fails; the policy is withdrawn within 30 s, and then Envoy chooses for all keys",
    ),
    own: Some(|_, _| Ok(())),
    full: Length::full(10, 45, 10),
    // Votes take longer than the short forms.
    short: None,
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let host = stage.host(0);
    let slowness = stage.told(&host, "slowness");
    fs::write(&slowness, "2")?;
    let plan = stage.mesh().folder().join("plan.csv");
    let mut lines = "key,address\n".to_owned();
    for key in 0..KEYS {
        writeln!(lines, "{},{}", stage.key(key), host.address)?;
    }
    fs::write(&plan, lines)?;
    stage.mesh().tell_controls(json!({
        "policy": {"selection": "caching_plan", "mode": SHARE},
        "caching_plan": plan,
        "cache": null,
    }))?;
    let began = Instant::now();
    let mut withdrawn = None;
    stage.harm_with(|stage| {
        let name = format!("weir_control_policy_withdrawn{{cluster=\"{HOSTS}\"}}");
        let is_withdrawn = signs::of_control(stage.mesh().control(), &name) == Some(1);
        if is_withdrawn && withdrawn.is_none() {
            withdrawn = Some((began.elapsed(), stage.now_ms()));
        }
        Ok(())
    })?;
    let (took, at_ms) = withdrawn.context("the policy was not withdrawn")?;
    let now_ms = stage.now_ms();
    let records = stage.records();
    let planned = records
        .iter()
        .filter(|record| record.reason.as_deref() == Some("planned"));
    let spread_ms = at_ms + SPREAD.as_millis() as u64;
    let late = planned.clone().filter(|record| record.due_ms > spread_ms);
    let [planned, late] = [planned.count(), late.count()].map(|count| count as f64);
    stage.measured("requests by the plan", planned, "", None);
    stage.measured("withdrawn after", took.as_secs_f64(), "s", Some(AT_MOST_S));
    stage.measured("by the plan 3 s later", late, "", Some(0.0));
    let watched = now_ms.saturating_sub(spread_ms) as f64 / 1e3;
    stage.measured("watched from then on", watched, "s", None);
    stage.mesh().tell_controls(json!({}))?;
    Ok(fs::remove_file(&slowness)?)
}
