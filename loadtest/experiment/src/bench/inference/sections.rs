// SPDX-License-Identifier: Apache-2.0
//! The tables.

mod callers;
mod killed;
mod loads;
mod priorities;
mod table;
mod words;

use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::inference::figures::{self, Times, mean};
use crate::bench::inference::plan::Plan;
use crate::bench::inference::plots;
use crate::bench::inference::run::Run;
use crate::bench::inference::way::Way;
use crate::bench::inference::workload::Workload;
use crate::bench::section::{NO_SPREAD, Section};
pub(super) use callers::callers;
pub(super) use killed::killed;
pub(super) use loads::loads;
pub(super) use priorities::priorities;
use table::Column;
use weir_report::{Spread, quantile};

pub(super) fn of(plan: &Plan, workload: &Workload, runs: &[Run]) -> Result<Vec<Section>> {
    let measured = Measured {
        plan,
        workload,
        runs,
    };
    Ok(vec![
        measured.found()?,
        measured.whole()?,
        measured.costs()?,
    ])
}

/// CPU of the sidecar and of whom it asks.
type Total = fn(&Run) -> Duration;

struct Measured<'a> {
    plan: &'a Plan,
    workload: &'a Workload,
    runs: &'a [Run],
}

impl Measured<'_> {
    fn found(&self) -> Result<Section> {
        let mut columns = found_and_first(self.plan);
        columns.push(Column::of("busiest host's reading, to the mean", |run| {
            figures::imbalance(&run.answered, self.plan.hosts)
        }));
        Ok(Section {
            title: "The same prompts on EMULATED hosts of a language model: found, and first token"
                .to_owned(),
            how: self.how(),
            table: table::of(&columns, &Way::ALL, self.runs)?,
            notes: self.notes(),
            plots: plots::of(self.plan, self.runs),
            ..Section::default()
        })
    }

    fn whole(&self) -> Result<Section> {
        Ok(Section {
            title: "The same prompts on EMULATED hosts: the whole answer".to_owned(),
            how: "EMULATED, MODELLED: the same runs. Mostly decode, whose modelled time does not depend on the host."
                .to_owned(),
            table: table::of(
                &times(self.plan.speed_up, "all-in", |times| times.all_s),
                &Way::ALL,
                self.runs,
            )?,
            ..Section::default()
        })
    }

    fn costs(&self) -> Result<Section> {
        let requests = self.workload.facts.requests as f64;
        let micros = move |cpu: Duration| cpu.as_secs_f64() * 1e6 / requests;
        let rest_ms = |run: &Run, share| {
            let times = figures::times(run, self.plan.speed_up);
            let rests = times.iter().filter_map(|times| times.rest_s);
            quantile(&rests.map(|s| s * 1e3).collect::<Vec<_>>(), share)
        };
        let columns = vec![
            Column::of("Envoy CPU / µs a request", move |run| {
                micros(run.envoy.spent)
            }),
            Column::if_any("picker or weir-control / µs", move |run| {
                Some(micros(run.asked?.spent))
            }),
            Column::of("idle, both / ms a second", |run| run.idle() * 1e3),
            Column::of("both without idle / µs a request", move |run| {
                micros(run.cpu_of_requests())
            }),
            Column::if_any("all but the modelled host, p50 / ms", move |run| {
                rest_ms(run, 0.5)
            }),
            Column::if_any("p99", move |run| rest_ms(run, 0.99)),
            Column::if_any("replayer's lag, p99 / ms", |run| {
                let lags: Vec<f64> = run.records.iter().map(|r| r.lag_us as f64 / 1e3).collect();
                quantile(&lags, 0.99)
            }),
        ];
        let mut table = table::of(&columns, &Way::ALL, self.runs)?;
        let both = "Envoy and picker or weir-control";
        let ratios: [(&str, Total); 2] = [
            (", without idle", Run::cpu_of_requests),
            (", with idle", Run::cpu),
        ];
        for (kind, cpu) in ratios {
            table.header.push(format!("{both}{kind}, to least_request"));
            for (way, row) in Way::ALL.into_iter().zip(&mut table.rows) {
                let of = |way| -> Vec<f64> {
                    let runs = self.runs.iter().filter(|run| run.way == way);
                    runs.map(|run| micros(cpu(run))).collect()
                };
                let ratio = Spread::of_ratios(&of(way), &of(Way::LeastRequest));
                row.push(table::cell(ratio.context(NO_SPREAD)?));
            }
        }
        Ok(Section {
            title: "The same prompts on EMULATED hosts: what choosing costs".to_owned(),
            how: self.how_costs(),
            table,
            notes: self.notes_on_costs(),
            ..Section::default()
        })
    }
}

/// Mean and percentiles of a time, in seconds of the trace.
/// What was found of the prompts, and when their answers began.
fn found_and_first<'a>(plan: &Plan) -> Vec<Column<'a>> {
    let mut columns = vec![Column::of("prompt tokens found / %", |run| {
        figures::found(&run.answered) * 100.0
    })];
    columns.extend(times(plan.speed_up, "first token", |times| {
        times.first_token_s
    }));
    columns
}

fn times<'a>(speed_up: u32, what: &str, time: fn(&Times) -> f64) -> Vec<Column<'a>> {
    let values =
        move |run: &Run| -> Vec<f64> { figures::times(run, speed_up).iter().map(time).collect() };
    let mut columns = vec![Column::of(&format!("{what}, mean / s"), move |run| {
        mean(&values(run))
    })];
    for (name, share) in [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)] {
        let of = move |run: &Run| quantile(&values(run), share);
        columns.push(Column::if_any(name, of));
    }
    columns
}
