// SPDX-License-Identifier: Apache-2.0
//! A table of the largest size, of which most rows are others each second.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::json;
use weir_mesh::{HOSTS, Mesh};
use weir_report::quantile;

use crate::faults::fault::{Expectation, Fault, Length};
use crate::faults::record::End;
use crate::faults::signs;
use crate::faults::stage::{Stage, sidecar};

/// As many as a table may have (filters/tables/README.md) with those of the mesh; the short form has a tenth.
const ROWS: usize = 39_900;
/// Rows that change. A file of 250,000 YAML nodes is the largest that weir-control reads: a row with three fields is
/// seven of them, one with two is five.
const CHANGING: usize = 24_000;
const SECOND: Duration = Duration::from_secs(1);
/// A caller's Envoy may have grown by so much from a third of the harm on.
const GROWTH_MIB: f64 = 30.0;

pub(crate) const FAULT: Fault = Fault {
    name: "largest-table",
    expectation: Expectation::capacity_remains(
        "callers choose by the newest table, and their Envoys stay as large as they are",
    ),
    own: Some(|plan, _| {
        // Only hosts that get requests have figures: those that their answers carry.
        plan.cluster = json!({"scrape": null, "cache": null});
        Ok(())
    }),
    full: Length::full(10, 60, 10),
    short: Some(Length::short(2, 6, 2)),
    run,
    known_gap: None,
};

fn run(stage: &mut Stage<'_>) -> Result<()> {
    let harm = stage.length().harm;
    let rows = if harm < Duration::from_secs(30) {
        ROWS / 10
    } else {
        ROWS
    };
    let file = stage.mesh().folder().join("hosts.yaml");
    write(&file, rows, 0)?;
    // Nobody is where these say that they drain, and at the end they go at once.
    let cluster = json!({
        "scrape": null, "cache": null, "hosts_file": file, "shrink_after": "0s",
        "policy": {"panic_threshold": 0},
    });
    stage.mesh().tell_controls(cluster)?;
    let what = format!("{rows} hosts more");
    stage.until(&what, |mesh| {
        let name = format!("weir_control_hosts{{cluster=\"{HOSTS}\",state=\"draining\"}}");
        (signs::of_control(mesh.control(), &name)? >= rows as u64).then_some(())
    })?;
    let published =
        format!("weir_control_published_total{{cluster=\"{HOSTS}\",kind=\"host_table\"}}");
    let before =
        signs::of_control(stage.mesh().control(), &published).context("tables that were pushed")?;
    let (mut written, mut stale, mut third) = (0, 0, None);
    let began = Instant::now();
    stage.harm_with(|stage| {
        if began.elapsed() >= SECOND * written {
            written += 1;
            write(&file, rows, written)?;
            stale = stale.max(signs::stale(stage.mesh()));
            if third.is_none() && began.elapsed() > harm / 3 {
                third = Some(resident_mib(stage.mesh())?);
            }
        }
        Ok(())
    })?;
    let pushed = signs::of_control(stage.mesh().control(), &published).unwrap_or(0) - before;
    ensure!(pushed > 0, "no table was pushed");
    let grown = resident_mib(stage.mesh())? - third.context("it was too short")?;
    stage.measured("rows", rows as f64, "", None);
    stage.measured("tables pushed", pushed as f64, "", None);
    stage.measured(
        "callers whose table was too old",
        stale as f64,
        "",
        Some(0.0),
    );
    stage.measured("a caller's Envoy grew by", grown, "MiB", Some(GROWTH_MIB));
    let refused = stage.mesh().callers().iter();
    let refused: u64 = refused
        .filter_map(|caller| signs::figure(caller.admin, "weir_resources_refused_total"))
        .sum();
    stage.measured("tables refused", refused as f64, "", Some(0.0));
    let p99 = p99(stage, began.elapsed());
    stage.measured("p99", p99, "ms", None);
    // As it was, so that the calm after it is calm.
    write(&file, 1, 0)
}

/// Hosts that take nothing new, so that nobody is sent to where nobody is: the addresses are those for
/// documentation (RFC 5737) and measurements (RFC 2544).
fn write(file: &Path, rows: usize, second: u32) -> Result<()> {
    let mut text = String::new();
    for row in 0..rows {
        let (net, host) = (row / 200, row % 200);
        let cores = 1000 + 100 * ((row as u32 + second) % 50);
        let more = match row < CHANGING {
            true => format!(", capacity_millicores: {cores}"),
            false => String::new(),
        };
        writeln!(
            text,
            "- {{ address: \"198.19.{net}.{host}:80\", draining: true{more} }}"
        )?;
    }
    weir_whole_file::write(file, text).with_context(|| format!("writing {}", file.display()))
}

/// Of the first caller's Envoy.
fn resident_mib(mesh: &mut Mesh) -> Result<f64> {
    let name = sidecar(&mesh.callers()[0].name);
    let listed = mesh.processes().list()?;
    let envoy = listed.iter().find(|listed| listed.name == name);
    let memory = envoy.context("no sidecar")?.process.memory()?;
    Ok(memory.resident as f64 / f64::from(1 << 20))
}

/// Of the answers to requests that were due in this last while.
fn p99(stage: &Stage<'_>, last: Duration) -> f64 {
    let from = stage
        .now_ms()
        .saturating_sub(crate::faults::load::millis(last));
    let answered = stage.records().into_iter();
    let answered = answered.filter(|record| record.due_ms >= from && record.end == End::Answered);
    let took: Vec<f64> = answered.map(|record| record.took_ms as f64).collect();
    quantile(&took, 0.99).unwrap_or(0.0)
}
