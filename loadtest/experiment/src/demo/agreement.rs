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

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Serialize;
use weir_stage::command::Run;

use crate::demo::plan::{Plan, Work};
use crate::demo::results::Figures;
use crate::demo::table::{Row, Table};
use crate::demo::ways::{AGREED, Kind, Way};
use crate::demo::{Demo, Programs, Told};
use crate::verdict::Verdict;
use crate::{Experiment, replay};

/// Two ways are apart where the simulator has one figure of the one so many times that of the other.
/// The demonstration came within 15 % of the simulator in each of Weir's, and within 30 % in Envoy's, on a busy machine.
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

/// Programs of both.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    programs: Programs,
    /// weir-sim
    #[arg(long, value_name = "FILE", help_heading = crate::driver::GIVEN)]
    simulator: PathBuf,
}

/// The experiment: both, a way a turn.
pub struct Agreement {
    demo: Demo,
    simulator: PathBuf,
}

/// A way in both.
#[derive(Serialize)]
pub struct Both {
    #[serde(flatten)]
    real: Told,
    #[serde(skip)]
    simulated: Figures,
}

impl Experiment for Agreement {
    const NAME: &'static str = "agreement";
    type Args = Args;
    type Turn = &'static Way;
    type Round = Both;

    fn set_up(args: Args, folder: &Path) -> Result<Self> {
        let command = "cargo xtask test --only agreement".to_owned();
        let (plan, ways) = (Plan::emulated(true), AGREED.iter().collect());
        Ok(Self {
            demo: Demo::new(args.programs, plan, ways, command, folder)?,
            simulator: args.simulator,
        })
    }

    fn turns(&self) -> Vec<&'static Way> {
        self.demo.turns()
    }

    fn play(&mut self, way: &&'static Way) -> Result<Vec<Both>> {
        let simulated = simulate(&self.demo, way, &self.simulator)?;
        let real = self.demo.play(way)?.into_iter().zip([simulated]);
        let both = real.map(|(real, simulated)| Both { real, simulated });
        Ok(both.collect())
    }

    fn table(&self, ways: &[Both]) -> String {
        let table = |of: fn(&Both) -> &Figures| {
            let rows = ways.iter().flat_map(|both| &of(both).by_priority);
            Table(rows.cloned().collect())
        };
        let (simulated, real) = (
            table(|both| &both.simulated),
            table(|both| &both.real.figures),
        );
        format!("SIMULATED:\n{simulated}\nthrough Envoys:\n{real}")
    }

    fn verdicts(&self, ways: &[Both]) -> Vec<Verdict> {
        let simulated: Vec<Row> = ways.iter().map(|both| both.simulated.all.clone()).collect();
        let real: Vec<Row> = ways
            .iter()
            .map(|both| both.real.figures.all.clone())
            .collect();
        compare(&simulated, &real)
    }
}

/// The way on the demonstration's fleet.
fn simulate(demo: &Demo, way: &Way, simulator: &Path) -> Result<Figures> {
    let chooses = match way.kind {
        Kind::Envoy(balancer) => vec!["--placement", balancer.placement()],
        Kind::Weir {
            selection,
            overload,
        } => vec!["--selection", selection, "--overload", overload],
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
        .args(chooses)
        .args(["--hosts", &plan.hosts.to_string()])
        .args(["--cores", &plan.cores.to_string()])
        .args(["--cache-bytes", &bytes(plan.cache_bytes)?.to_string()])
        .args([
            "--fetch-bytes-per-second",
            &bytes(trace.fetch_bytes_per_second)?.to_string(),
        ])
        .args(["--callers", &way.sidecars.count.to_string()])
        .args([
            "--breaker-queued-jobs",
            &limits.breaker_queued_jobs.to_string(),
        ])
        .args(["--dagor-threshold", limits.dagor_threshold])
        .args(["--dagor-step", &limits.dagor_step.to_string()])
        .args(["--deadline", &format!("{}ms", plan.deadline.as_millis())])
        .captured()
        .with_context(|| format!("simulating {}", way.name))?;
    let records = replay::read(&out)?;
    Ok(Figures::new(way.name, &records))
}

/// `5G`, as weir-worker reads it.
fn bytes(text: &str) -> Result<u64> {
    let number = text.strip_suffix('G').map(str::parse::<u64>);
    let Some(Ok(billions)) = number else {
        bail!("{text}: not whole billions of bytes");
    };
    Ok(billions * 1_000_000_000)
}

/// A claim for each two ways that the simulator tells apart: there have to be some.
fn compare(simulated: &[Row], real: &[Row]) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    let mut claim = |holds, claim| {
        verdicts.push(Verdict {
            claim,
            holds,
            asserted: true,
        });
    };
    for Measure { name, of } in &MEASURES {
        let mut apart = false;
        for (worse, real_worse) in simulated.iter().zip(real) {
            for (better, real_better) in simulated.iter().zip(real) {
                let (more, less) = (of(worse), of(better));
                if more <= APART * less {
                    continue;
                }
                apart = true;
                let (real_more, real_less) = (of(real_worse), of(real_better));
                claim(
                    real_more > real_less,
                    format!(
                        "{name} of {} over that of {}: {more:.3} over {less:.3} SIMULATED, {real_more:.3} over \
                         {real_less:.3} through Envoys",
                        worse.way, better.way,
                    ),
                );
            }
        }
        if !apart {
            claim(
                false,
                format!("the simulator tells two ways apart by {name}"),
            );
        }
    }
    verdicts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(way: &str, duration: f64, hits: f64) -> Row {
        let mut row = Row::made_up(way, 1.0, hits);
        row.duration.mean = duration;
        row
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
        let verdicts = compare(&simulated, &real);
        assert_eq!(verdicts.len(), 3, "{verdicts:?}");
        assert!(verdicts.iter().all(|verdict| verdict.holds));
    }

    #[test]
    fn another_order_fails_and_so_does_nothing_to_compare() {
        let simulated = [row("a", 3000.0, 0.9), row("b", 100.0, 0.97)];
        let real = [row("a", 90.0, 0.7), row("b", 300.0, 0.9)];
        let [duration, data] = &compare(&simulated, &real)[..] else {
            panic!("one claim a measure");
        };
        let claim = "mean duration / ms of a over that of b";
        assert!(
            duration.fails() && duration.claim.starts_with(claim),
            "{duration}"
        );
        assert!(!data.fails(), "{data}");
        let nothing = compare(&simulated[..1], &real[..1]);
        assert!(
            nothing.len() == 2 && nothing.iter().all(Verdict::fails),
            "{nothing:?}"
        );
    }

    #[test]
    fn bytes_are_read_as_the_hosts_read_them() {
        assert_eq!(bytes("4G").unwrap(), 4_000_000_000);
        assert!(bytes("4M").is_err() && bytes("G").is_err());
    }
}
