// SPDX-License-Identifier: Apache-2.0
//! The same prompts to the same EMULATED hosts of a language model, by who chooses the host.
//!
//! ```text
//!  trace ── weir-replay ──> sidecar of one way ──> weir-llm-host: prefix cache, queue, modelled times
//!                             │ asks: nobody, Weir's filter, EPP       └── request log ──┐
//!                             └── CPU of the sidecar and of whom it asks ──> Run <── records ──┘
//! ```
//! Each run begins with empty caches. The ways take turns, round after round.

mod cpu;
mod figures;
mod plan;
mod plots;
mod records;
mod run;
mod sections;
mod stage;
mod way;
mod workload;

use anyhow::Result;

use crate::Bench;
use crate::inference::plan::Plan;
use crate::inference::run::Run;
use crate::inference::way::Way;
use crate::inference::workload::Workload;
use crate::section::Section;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Section>> {
    let plan = Plan::new(bench.quick);
    let folder = bench.folder.join("inference");
    let workload = Workload::make(bench, &plan, &folder)?;
    let mut runs: Vec<Run> = Vec::new();
    for round in 0..plan.rounds {
        for way in Way::in_round(round) {
            let folder = folder.join(format!("{}-{}", round + 1, way.node()));
            runs.push(run::once(bench, &plan, &workload, way, &folder)?);
        }
    }
    sections::of(&plan, &workload, &runs)
}
