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
use std::time::Duration;

use anyhow::{Context, Result};

use crate::bench::inference::plan::Plan;
use crate::bench::inference::run::Run;
use crate::bench::inference::saturation::Saturation;
use crate::bench::inference::sending::{DEADLINE, Sending};
use crate::bench::inference::way::Way;
use crate::bench::inference::workload::{AZURE, Workload};
use crate::bench::section::Section;
use crate::bench::setting::Setting;

/// All ways, at the speed of the trace.
pub(crate) fn measure(setting: &Setting) -> Result<Vec<Section>> {
    let plan = Plan::new(setting.quick);
    Trial::with(setting, &plan, ("inference", 0.0), |trial| {
        let runs = trial.rounds("", &Sending::of(&trial.workload, &Way::ALL))?;
        sections::of(&plan, &trial.workload, &runs)
    })
}

/// Some ways, each load after the other.
pub(crate) fn loads(setting: &Setting) -> Result<Vec<Section>> {
    let plan = Plan::new(setting.quick).lasting(5);
    at_loads(setting, &plan, "inference-loads", &setting.loads)
}

/// The same with prompts that have nothing in common. They are short, and more of them would keep the machine busy: fewer
/// hosts.
pub(crate) fn keyless(setting: &Setting) -> Result<Vec<Section>> {
    let minutes = if setting.quick { 5 } else { 15 };
    let plan = Plan {
        source: AZURE,
        hosts: 4,
        minutes,
        ..Plan::new(setting.quick)
    };
    at_loads(setting, &plan, "inference-keyless", &[0.8])
}

/// One caller and eight, some ways.
pub(crate) fn callers(setting: &Setting) -> Result<Vec<Section>> {
    let hurried = Plan::new(setting.quick).lasting(5);
    let deadline = DEADLINE * hurried.speed_up;
    let plan = hurried.unhurried();
    Trial::with(setting, &plan, ("inference-callers", 0.0), |trial| {
        let sending = Sending {
            deadline,
            ..Sending::of(&trial.workload, &Way::CALLERS)
        };
        let runs = trial.rounds("", &sending)?;
        Ok(vec![sections::callers(&plan, &trial.workload, &runs)?])
    })
}

fn at_loads(setting: &Setting, plan: &Plan, name: &str, loads: &[f64]) -> Result<Vec<Section>> {
    Trial::with(setting, plan, (name, 0.0), |trial| {
        let saturation = Saturation::of(plan, &trial.workload.facts);
        let at = |load: &f64| {
            let sending = Sending {
                speed: saturation.speed(*load),
                most_failed_percent: (*load < 1.0).then_some(1),
                ..Sending::of(&trial.workload, &Way::LOADS)
            };
            let runs = trial.rounds(&format!("load-{load}-"), &sending)?;
            Ok((*load, runs))
        };
        let runs = loads.iter().map(at).collect::<Result<Vec<_>>>()?;
        Ok(vec![sections::loads(
            plan,
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
    Trial::with(setting, &plan, ("inference-killed", 0.0), |trial| {
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

/// Of saturation, where it is more than hosts can do.
const OVERLOAD: f64 = 1.5;

/// Some ways, with more than hosts can do, of which a part is important.
pub(crate) fn priorities(setting: &Setting) -> Result<Vec<Section>> {
    let plan = Plan::new(setting.quick).lasting(6);
    Trial::with(setting, &plan, ("inference-priorities", 0.1), |trial| {
        let saturation = Saturation::of(&plan, &trial.workload.facts);
        let all = Sending {
            speed: saturation.speed(OVERLOAD),
            deadline: Duration::from_secs(u64::from(plan.patience_s)) / plan.speed_up,
            most_failed_percent: None,
            attempts: 1,
            ..Sending::of(&trial.workload, &Way::OVERLOADED)
        };
        let workload = fs::read_to_string(all.file)
            .with_context(|| format!("reading {}", all.file.display()))?;
        let important = workload::important(&workload)?;
        let file = trial.folder.join("important.ndjson");
        fs::write(&file, important.join("\n") + "\n")
            .with_context(|| format!("writing {}", file.display()))?;
        let alone = Sending {
            file: &file,
            requests: important.len(),
            ..all.clone()
        };
        let runs = trial.rounds("", &all)?;
        let beside = trial.rounds("alone-", &alone)?;
        let section = sections::priorities(&plan, &trial.workload, OVERLOAD, (&beside, &runs))?;
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
    /// In a folder of this name; this share of the sessions is important.
    fn with(
        setting: &Setting,
        plan: &Plan,
        (name, important): (&str, f64),
        measure: impl FnOnce(&Trial<'_>) -> Result<Vec<Section>>,
    ) -> Result<Vec<Section>> {
        let folder = setting.folder.join(name);
        let workload = Workload::make(setting, plan, important, &folder)?;
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
