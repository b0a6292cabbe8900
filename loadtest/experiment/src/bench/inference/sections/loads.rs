// SPDX-License-Identifier: Apache-2.0
//! A row for each way at each load.

use anyhow::{Context, Result};
use weir_report::{Spread, Table, digits};

use crate::bench::inference::figures::{self, Class, mean};
use crate::bench::inference::plan::Plan;
use crate::bench::inference::run::Run;
use crate::bench::inference::saturation::Saturation;
use crate::bench::inference::sections::table::{self, Column};
use crate::bench::inference::sections::{found_and_first, words};
use crate::bench::inference::way::Way;
use crate::bench::inference::workload::Workload;
use crate::bench::section::{Bound, NO_SPREAD, Section, Target};
use weir_report::quantile;

/// Of a target: what it is of a run.
type Figure = fn(&Run, u32) -> f64;

/// What Weir's figure to EPP's should be.
const TARGETS: [(&str, Figure, Bound); 3] = [
    (
        "first token, mean",
        |run, speed_up| mean(&first_tokens(run, speed_up)),
        Bound::AtMost(0.85),
    ),
    (
        "first token, p95",
        |run, speed_up| quantile(&first_tokens(run, speed_up), 0.95).unwrap_or(f64::NAN),
        Bound::AtMost(0.85),
    ),
    (
        "prompt tokens found",
        |run, _| figures::found(&run.answered),
        Bound::AtLeast(1.0),
    ),
];

pub(in crate::bench::inference) fn loads(
    plan: &Plan,
    workload: &Workload,
    saturation: &Saturation,
    loads: &[(f64, Vec<Run>)],
) -> Result<Section> {
    let columns = columns(plan, workload);
    let mut table = Table::default();
    let mut targets = Vec::new();
    for (load, runs) in loads {
        let of_load = table::of(&columns, &Way::LOADS, runs)?;
        table.header = of_load.header;
        let named = |mut row: Vec<String>| {
            row.insert(0, digits(*load));
            row
        };
        table.rows.extend(of_load.rows.into_iter().map(named));
        targets.extend(to_epp(plan, *load, runs)?);
    }
    table.header.insert(0, "load".to_owned());
    let all = || loads.iter().flat_map(|(_, runs)| runs);
    Ok(Section {
        title: format!(
            "The same prompts on EMULATED hosts of a language model: by load, {}",
            plan.source.name
        ),
        how: format!(
            "EMULATED, MODELLED: {}. Load 1 is the rate at which the tokens that have to be read come as fast as all hosts read \
             them ({} a second each, modelled), if what is cached is found as by one host with an endless cache, {:.1} % of \
             them: no placement can do more. The trace itself is {:.2}; its offsets are divided for each load, the hosts' times \
             are not. The ways of a load at once, each with hosts of its own, {}, from empty caches. Times are all-in and in \
             seconds of the trace, until the first token; what had no answer counts at the deadline. Beyond 1 queues grow as long as \
             requests come, and times depend on how long that is.",
            words::trace(plan, &workload.facts),
            plan.prefill_tokens_per_second,
            workload.facts.findable_share * 100.0,
            saturation.own(),
            words::rounds(plan),
        ),
        table,
        targets,
        notes: words::EPP_AND_WEIR
            .into_iter()
            .map(str::to_owned)
            .chain(words::busy(all()))
            .collect(),
        ..Section::default()
    })
}

fn columns<'a>(plan: &Plan, workload: &Workload) -> Vec<Column<'a>> {
    let requests = workload.facts.requests as f64;
    let mut columns = found_and_first(plan);
    columns.push(Column::of("without an answer / %", move |run| {
        (requests - run.good().count() as f64) / requests * 100.0
    }));
    columns.push(Column::of("CPU of Envoy / µs a request", move |run| {
        run.envoy.spent.as_secs_f64() * 1e6 / requests
    }));
    columns.push(Column::if_any("picker or weir-control / µs", move |run| {
        Some(run.asked?.spent.as_secs_f64() * 1e6 / requests)
    }));
    columns
}

fn first_tokens(run: &Run, speed_up: u32) -> Vec<f64> {
    figures::first_tokens(run, speed_up, Class::All)
}

/// Of Weir that hosts tell what they have; but for what EPP has none of.
fn to_epp(plan: &Plan, load: f64, runs: &[Run]) -> Result<Vec<Target>> {
    let of = |way, figure: Figure| -> Vec<f64> {
        let runs = runs.iter().filter(|run| run.way == way);
        runs.map(|run| figure(run, plan.speed_up)).collect()
    };
    let any =
        |(_, figure, _): &(&str, Figure, Bound)| of(Way::Epp, *figure).iter().all(|f| *f > 0.0);
    let target = |(what, figure, bound): (&str, Figure, Bound)| {
        let ratios = Spread::of_ratios(&of(Way::Events, figure), &of(Way::Epp, figure));
        Ok(Target {
            what: format!(
                "load {}: {what}, of {}, to EPP's",
                digits(load),
                Way::Events.name()
            ),
            bound,
            got: ratios.context(NO_SPREAD)?,
        })
    };
    TARGETS.into_iter().filter(any).map(target).collect()
}
