// SPDX-License-Identifier: Apache-2.0
//! The same prompts to the same EMULATED hosts of a language model, by who chooses the host.
//!
//! ```text
//!  trace ── weir-replay ──> sidecar of one way ──> weir-llm-host: prefix cache, queue, modelled times
//!                             │ asks: nobody, Weir's filter, EPP       └── request log ──┐
//!                             └── CPU of the sidecar and of whom it asks ──> Run <── records ──┘
//! ```
//! All ways of a round run side by side, each with hosts of its own and from empty caches: hosts
//! only sleep, and so every way has the same share of whatever else the machine does.

mod cpu;
mod figures;
mod hits;
mod plan;
mod plots;
mod records;
mod run;
mod sections;
mod stage;
mod way;
mod workload;

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::bench::inference::plan::Plan;
use crate::bench::inference::run::Run;
use crate::bench::inference::workload::Workload;
use crate::bench::section::Section;
use crate::bench::setting::Setting;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Section>> {
    let plan = Plan::new(setting.quick);
    let folder = setting.folder.join("inference");
    let workload = Workload::make(setting, &plan, &folder)?;
    let runs = rounds(setting, &plan, &workload, &folder);
    // Dozens of megabytes, which the next run writes again.
    let bodies = &workload.bodies;
    fs::remove_dir_all(bodies).with_context(|| format!("removing {}", bodies.display()))?;
    sections::of(&plan, &workload, &runs?)
}

fn rounds(setting: &Setting, plan: &Plan, workload: &Workload, folder: &Path) -> Result<Vec<Run>> {
    let mut runs: Vec<Run> = Vec::new();
    for round in 0..plan.rounds {
        let folder = folder.join(format!("round-{}", round + 1));
        runs.extend(run::round(setting, plan, workload, &folder)?);
    }
    Ok(runs)
}
