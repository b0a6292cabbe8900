// SPDX-License-Identifier: Apache-2.0
//! More than the hosts can do, and a part of it important.

use anyhow::{Context, Result};
use weir_report::Spread;

use crate::bench::inference::figures::{self, Class, mean};
use crate::bench::inference::plan::Plan;
use crate::bench::inference::run::Run;
use crate::bench::inference::sections::table::{self, Column};
use crate::bench::inference::sections::words;
use crate::bench::inference::way::Way;
use crate::bench::inference::workload::Workload;
use crate::bench::section::{Bound, NO_SPREAD, Section, Target};
use weir_report::quantile;

/// `alone` are runs of the same ways with nothing but the important requests.
pub(in crate::bench::inference) fn priorities(
    plan: &Plan,
    workload: &Workload,
    load: f64,
    (alone, runs): (&[Run], &[Run]),
) -> Result<Section> {
    let speed_up = plan.speed_up;
    let first = move |run: &Run| figures::first_tokens(run, speed_up, Class::Important);
    let of_class = |what: &str, class: Class| {
        Column::of(what, move |run| {
            figures::answered_in_time(run, class) * 100.0
        })
    };
    let columns = vec![
        of_class("answered in time / %", Class::All),
        of_class("of the important / %", Class::Important),
        of_class("of the others / %", Class::Others),
        Column::of("refused / %", |run| figures::refused(run) * 100.0),
        Column::of("first token of the important, mean / s", move |run| {
            mean(&first(run))
        }),
        Column::if_any("p95", move |run| quantile(&first(run), 0.95)),
    ];
    let mut table = table::of(&columns, &Way::OVERLOADED, runs)?;
    table.header.push("these alone, mean / s".to_owned());
    for (way, row) in Way::OVERLOADED.into_iter().zip(&mut table.rows) {
        let of_way = alone.iter().filter(|run| run.way == way);
        row.push(table::cell_of(of_way.map(|run| Some(mean(&first(run)))))?);
    }
    let of = |runs: &[Run], way: Way, figure: &dyn Fn(&Run) -> f64| -> Vec<f64> {
        let runs = runs.iter().filter(|run| run.way == way);
        runs.map(figure).collect()
    };
    let mut targets = Vec::new();
    let mut target = |what: String, bound, some: &[f64], base: &[f64]| -> Result<()> {
        targets.push(Target {
            what,
            bound,
            got: Spread::of_ratios(some, base).context(NO_SPREAD)?,
        });
        Ok(())
    };
    let in_time = |run: &Run| figures::answered_in_time(run, Class::All);
    let first = move |run: &Run| mean(&first(run));
    for way in [Way::Levels, Way::ShortLevels] {
        let name = way.name();
        target(
            format!("{name}: answered in time, to EPP's"),
            Bound::AtLeast(1.2),
            &of(runs, way, &in_time),
            &of(runs, Way::Epp, &in_time),
        )?;
        target(
            format!("{name}: first token of the important, to these alone"),
            Bound::AtMost(1.1),
            &of(runs, way, &first),
            &of(alone, way, &first),
        )?;
    }
    Ok(Section {
        title: "The same prompts on EMULATED hosts of a language model: more than they can do".to_owned(),
        how: format!(
            "EMULATED, MODELLED: {}, at load {load} (as in inference-loads). One in ten sessions, drawn, is important \
             (x-weir-priority). Whoever asked leaves {} s of the trace after the request was due, \
             and tries nothing again; in time is what was answered whole by then. All ways at once, {}, from empty caches; beside it the important ones \
             alone, at the same moments. Times are all-in and in seconds of the trace; what had no answer counts at the deadline.",
            words::trace(plan, &workload.facts),
            plan.patience_s,
            words::rounds(plan),
        ),
        table,
        targets,
        notes: [
            "EPP 1.3.0 knows priorities by InferenceObjective alone, and its program never watches these: every request has the \
             same, and nothing is refused.",
            "dagor: weir-control's defaults, sped up: levels that head for a wait of 2 s of the trace; or for 500 ms of it, tried \
             because engines read in the order in which prompts come, so that the important wait as long as all. The emulated hosts \
             know no priority and read prompts in the order in which they came, so that nobody overtakes a queue.",
            words::EPP_AND_WEIR[0],
        ]
        .map(str::to_owned)
        .into_iter()
        .chain(words::busy(runs))
        .collect(),
        ..Section::default()
    })
}
