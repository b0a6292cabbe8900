// SPDX-License-Identifier: Apache-2.0
//! One caller, and eight that take turns, in the trace's own time.

use anyhow::{Context, Result};
use weir_report::Spread;

use crate::bench::inference::figures::{self, Class, mean};
use crate::bench::inference::plan::Plan;
use crate::bench::inference::run::Run;
use crate::bench::inference::sections::table;
use crate::bench::inference::sections::{found_and_first, words};
use crate::bench::inference::way::Way;
use crate::bench::inference::workload::Workload;
use crate::bench::section::{Bound, NO_SPREAD, Section, Target};

pub(in crate::bench::inference) fn callers(
    plan: &Plan,
    workload: &Workload,
    runs: &[Run],
) -> Result<Section> {
    let first_token = |way| -> Vec<f64> {
        let runs = runs.iter().filter(|run| run.way == way);
        let of = |run| mean(&figures::first_tokens(run, plan.speed_up, Class::All));
        runs.map(of).collect()
    };
    let ratios = Spread::of_ratios(&first_token(Way::EventsOfEight), &first_token(Way::Events));
    Ok(Section {
        title: "The same prompts on EMULATED hosts of a language model: one caller and eight, in the trace's own time"
            .to_owned(),
        how: format!(
            "EMULATED, MODELLED: {}. One sidecar sends everything, or eight take turns. In other parts the trace and the hosts are \
             sped up, and what sidecars tell each other by weir-control is not: here nothing is. Four ways at once, each with \
             hosts of its own, {}, from empty caches. Times are all-in, until the first token.",
            words::trace(plan, &workload.facts),
            words::rounds(plan),
        ),
        table: table::of(&found_and_first(plan), &Way::CALLERS, runs)?,
        targets: vec![Target {
            what: "first token, mean, of eight Weir callers to one".to_owned(),
            bound: Bound::AtMost(1.05),
            got: ratios.context(NO_SPREAD)?,
        }],
        notes: [words::EPP_AND_WEIR[0].to_owned()]
            .into_iter()
            .chain(words::busy(runs))
            .collect(),
        ..Section::default()
    })
}
