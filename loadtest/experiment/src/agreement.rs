// SPDX-License-Identifier: Apache-2.0
//! Whether the simulator and the demonstration agree on which way is better.
//!
//! ```text
//!                     ┌─> the quick demonstration: Envoys, filter, weir-control, emulated hosts ─┐
//! the same workload ──┤                                                                         ├─> same order?
//!                     └─> weir-sim: the same fleet, SIMULATED ───────────────────────────────────┘
//! ```
//! No time is held against another: only the order of two ways, and only where the simulator sees
//! them so far apart that a busy machine does not turn it.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use weir_stage::command::Run;
use weir_stage::interrupt;

use crate::demo::plan::{Plan, Work};
use crate::demo::programs::Programs;
use crate::demo::replay::records;
use crate::demo::results::Figures;
use crate::demo::table::{Row, Table};
use crate::demo::ways::{AGREED, Kind, Way};
use crate::demo::workload::{PRIORITIES, Workload};
use crate::demo::{Demo, kept};
use crate::workspace::Workspace;

/// Two ways are apart where the simulator has one figure of the one so many times that of the other.
/// The demonstration came within 15 % of the simulator in each, on a busy machine.
const APART: f64 = 2.0;

/// What is compared, each the less the better.
const MEASURES: [Measure; 2] = [
    Measure {
        name: "mean duration / ms",
        of: |row| row.duration.mean,
    },
    Measure {
        name: "share of answers without the data",
        of: |row| 1.0 - row.hits,
    },
];

struct Measure {
    name: &'static str,
    of: fn(&Row) -> f64,
}

/// Runs both and fails where they disagree, or where there is nothing to agree on.
pub(crate) fn check(workspace: &Workspace) -> Result<()> {
    interrupt::catch()?;
    let programs = Programs::debug(workspace)?;
    let folder = workspace
        .cache()
        .join("agreement")
        .join(kept::now()?.to_string());
    fs::create_dir_all(&folder).with_context(|| format!("creating {}", folder.display()))?;
    let plan = Plan::emulated(true);
    let workload = Workload::prepare(workspace, &programs, &plan, &folder)?;
    let demo = Demo {
        programs,
        plan,
        workload,
        folder,
    };
    let ways: Vec<&'static Way> = AGREED.iter().collect();
    let simulator = workspace.target.join("debug/weir-sim");
    let simulated: Vec<Figures> = ways
        .iter()
        .map(|way| simulate(&demo, way, &simulator))
        .collect::<Result<_>>()?;
    let (real, _) = demo.compare(&ways)?;
    let rows = |figures: &[Figures]| -> Vec<Row> {
        let rows = figures.iter().flat_map(|way| &way.by_priority);
        rows.cloned().collect()
    };
    println!("\nSIMULATED:\n{}", Table(rows(&simulated)));
    println!("through Envoys:\n{}", Table(rows(&real)));
    let all =
        |figures: &[Figures]| -> Vec<Row> { figures.iter().map(|way| way.all.clone()).collect() };
    let lines = compare(&all(&simulated), &all(&real))?;
    println!("{}", lines.join("\n"));
    Ok(())
}

/// The way on the demonstration's fleet.
fn simulate(demo: &Demo, way: &Way, simulator: &Path) -> Result<Figures> {
    let Kind::Weir {
        selection,
        overload,
    } = way.kind
    else {
        bail!("{}: the simulator has no Envoy of its own", way.name);
    };
    let plan = &demo.plan;
    let Work::Emulated(trace) = &plan.work else {
        bail!("the simulator does not apply rules");
    };
    let out = demo.folder.join(format!("simulated-{}.csv", way.folder()));
    let limits = &plan.limits;
    Command::new(simulator)
        .arg("run")
        .arg("--workload")
        .arg(&demo.workload.file)
        .arg("--out")
        .arg(&out)
        .args(["--selection", selection, "--overload", overload])
        .args(["--hosts", &plan.hosts.to_string()])
        .args(["--cores", &plan.cores.to_string()])
        .args(["--cache-bytes", &bytes(plan.cache_bytes)?.to_string()])
        .args([
            "--fetch-bytes-per-second",
            &bytes(trace.fetch_bytes_per_second)?.to_string(),
        ])
        .args(["--callers", &plan.callers.to_string()])
        .args([
            "--breaker-queued-jobs",
            &limits.breaker_queued_jobs.to_string(),
        ])
        .args(["--dagor-threshold", limits.dagor_threshold])
        .args(["--dagor-step", &limits.dagor_step.to_string()])
        .args(["--deadline", &format!("{}ms", plan.deadline.as_millis())])
        .captured()
        .with_context(|| format!("simulating {}", way.name))?;
    let records = records::read(&out)?;
    Ok(Figures::new(way.name, &PRIORITIES, &records, None, 0.0))
}

/// `5G`, as weir-worker reads it.
fn bytes(text: &str) -> Result<u64> {
    let number = text.strip_suffix('G').map(str::parse::<u64>);
    let Some(Ok(billions)) = number else {
        bail!("{text}: not whole billions of bytes");
    };
    Ok(billions * 1_000_000_000)
}

/// A line for each two ways that the simulator tells apart.
fn compare(simulated: &[Row], real: &[Row]) -> Result<Vec<String>> {
    let (mut lines, mut wrong) = (Vec::new(), 0);
    for Measure { name, of } in &MEASURES {
        let mut apart = 0;
        for (worse, real_worse) in simulated.iter().zip(real) {
            for (better, real_better) in simulated.iter().zip(real) {
                let (more, less) = (of(worse), of(better));
                if more <= APART * less {
                    continue;
                }
                apart += 1;
                let (real_more, real_less) = (of(real_worse), of(real_better));
                let agreed = real_more > real_less;
                wrong += usize::from(!agreed);
                lines.push(format!(
                    "{}: {name} of {} over that of {}: {more:.3} over {less:.3} SIMULATED, {real_more:.3} over \
                     {real_less:.3} through Envoys",
                    if agreed { "agreed" } else { "NOT AGREED" },
                    worse.way,
                    better.way,
                ));
            }
        }
        ensure!(
            apart > 0,
            "the simulator tells no two ways apart by {name}: nothing is compared"
        );
    }
    ensure!(
        wrong == 0,
        "the simulator and the demonstration disagree:\n{}",
        lines.join("\n")
    );
    Ok(lines)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demo::table::Spread;

    fn row(way: &str, duration: f64, hits: f64) -> Row {
        let spread = Spread {
            mean: duration,
            p50: 1.0,
            p90: 1.0,
            p95: 1.0,
            p99: 1.0,
        };
        Row {
            way: way.into(),
            priority: "all".into(),
            requests: 1,
            duration: spread,
            wait: spread,
            hits,
            shed: 0,
            failed: 0,
            unevenness: 0.0,
        }
    }

    #[test]
    fn only_ways_that_are_far_apart_are_compared_and_only_their_order() {
        let simulated = [
            row("a", 3000.0, 0.9),
            row("b", 100.0, 0.97),
            row("c", 120.0, 0.95),
        ];
        // b and c have changed places.
        let real = [
            row("a", 900.0, 0.7),
            row("b", 300.0, 0.9),
            row("c", 200.0, 0.8),
        ];
        let lines = compare(&simulated, &real).unwrap();
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines.iter().all(|line| line.starts_with("agreed")));
    }

    #[test]
    fn another_order_is_an_error_and_so_is_nothing_to_compare() {
        let simulated = [row("a", 3000.0, 0.9), row("b", 100.0, 0.97)];
        let real = [row("a", 90.0, 0.7), row("b", 300.0, 0.9)];
        let error = compare(&simulated, &real).unwrap_err().to_string();
        assert!(
            error.contains("NOT AGREED: mean duration / ms of a over that of b"),
            "{error}"
        );
        let error = compare(&simulated[..1], &real[..1])
            .unwrap_err()
            .to_string();
        assert!(error.contains("nothing is compared"), "{error}");
    }

    #[test]
    fn bytes_are_read_as_the_hosts_read_them() {
        assert_eq!(bytes("4G").unwrap(), 4_000_000_000);
        assert!(bytes("4M").is_err() && bytes("G").is_err());
    }
}
