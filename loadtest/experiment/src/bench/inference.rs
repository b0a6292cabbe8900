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
mod saturation;
mod sections;
mod sending;
mod stage;
mod way;
mod workload;

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result};

use crate::bench::inference::plan::Plan;
use crate::bench::inference::run::Run;
use crate::bench::inference::saturation::Saturation;
use crate::bench::inference::sending::Sending;
use crate::bench::inference::way::Way;
use crate::bench::inference::workload::Workload;
use crate::bench::section::Section;
use crate::bench::setting::Setting;

/// All ways, at the speed of the trace.
pub(crate) fn measure(setting: &Setting) -> Result<Vec<Section>> {
    let plan = Plan::new(setting.quick);
    Trial::with(setting, &plan, "inference", |trial| {
        let runs = trial.rounds("", &Sending::of(&trial.workload, &Way::ALL))?;
        sections::of(&plan, &trial.workload, &runs)
    })
}

/// Some ways, each load after the other.
pub(crate) fn loads(setting: &Setting) -> Result<Vec<Section>> {
    let plan = Plan::new(setting.quick).lasting(5);
    Trial::with(setting, &plan, "inference-loads", |trial| {
        let saturation = Saturation::of(&plan, &trial.workload.facts);
        let at = |load: &f64| {
            let sending = Sending {
                speed: saturation.speed(*load),
                most_failed_percent: (*load < 1.0).then_some(1),
                ..Sending::of(&trial.workload, &Way::LOADS)
            };
            let runs = trial.rounds(&format!("load-{load}-"), &sending)?;
            Ok((*load, runs))
        };
        let runs = setting.loads.iter().map(at).collect::<Result<Vec<_>>>()?;
        Ok(vec![sections::loads(
            &plan,
            &trial.workload,
            &saturation,
            &runs,
        )?])
    })
}

/// Of saturation, where whom sidecars ask is killed.
const LOAD_OF_KILLED: f64 = 0.8;

/// Some ways, of which whom sidecars ask is killed in the middle.
pub(crate) fn killed(setting: &Setting) -> Result<Vec<Section>> {
    let plan = Plan::new(setting.quick).lasting(4);
    Trial::with(setting, &plan, "inference-killed", |trial| {
        let saturation = Saturation::of(&plan, &trial.workload.facts);
        let calm = Sending {
            speed: saturation.speed(LOAD_OF_KILLED),
            most_failed_percent: None,
            ..Sending::of(&trial.workload, &Way::ASKING)
        };
        let killed = Sending {
            kills: true,
            ..calm.clone()
        };
        let runs = trial.rounds("killed-", &killed)?;
        let beside = trial.rounds("calm-", &calm)?;
        let section = sections::killed(
            &plan,
            &trial.workload,
            LOAD_OF_KILLED,
            &calm,
            (&beside, &runs),
        )?;
        Ok(vec![section])
    })
}

/// A workload that has been written, and what it is sent through.
struct Trial<'a> {
    setting: &'a Setting,
    plan: &'a Plan,
    folder: PathBuf,
    workload: Workload,
}

impl Trial<'_> {
    fn with(
        setting: &Setting,
        plan: &Plan,
        name: &str,
        measure: impl FnOnce(&Trial<'_>) -> Result<Vec<Section>>,
    ) -> Result<Vec<Section>> {
        let folder = setting.folder.join(name);
        let workload = Workload::make(setting, plan, &folder)?;
        let trial = Trial {
            setting,
            plan,
            folder,
            workload,
        };
        let sections = measure(&trial);
        // Dozens of megabytes, which the next run writes again.
        let bodies = &trial.workload.bodies;
        fs::remove_dir_all(bodies).with_context(|| format!("removing {}", bodies.display()))?;
        sections
    }

    /// As many as are planned, in folders whose names begin so.
    fn rounds(&self, name: &str, sending: &Sending<'_>) -> Result<Vec<Run>> {
        let mut runs: Vec<Run> = Vec::new();
        for round in 1..=self.plan.rounds {
            let folder = self.folder.join(format!("{name}round-{round}"));
            runs.extend(run::round(self, sending, &folder)?);
        }
        Ok(runs)
    }
}
