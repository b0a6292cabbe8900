// SPDX-License-Identifier: Apache-2.0
//! What is sent, the same to all.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use serde::Deserialize;
use weir_stage::command::Run;

use crate::bench::inference::plan::Plan;
use crate::bench::setting::Setting;

/// A part of the program, so that it can be repeated from anywhere.
const TRACE: &[u8] = include_bytes!("../../../../traces/mooncake_conversation_10min.csv.gz");

pub(super) struct Workload {
    pub(super) file: PathBuf,
    pub(super) bodies: PathBuf,
    pub(super) facts: Facts,
}

/// What weir-replay says of it.
#[derive(Debug, Deserialize)]
pub(super) struct Facts {
    pub(super) requests: usize,
    pub(super) rate_per_s: f64,
    pub(super) duration_s: f64,
    pub(super) keys: usize,
    pub(super) returning_share: f64,
    pub(super) prompt_tokens: u64,
    pub(super) output_tokens: u64,
    pub(super) findable_share: f64,
}

impl Workload {
    pub(super) fn make(setting: &Setting, plan: &Plan, folder: &Path) -> Result<Self> {
        eprintln!("inference: writing the prompts of {} minutes", plan.minutes);
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let trace = folder.join("trace.csv.gz");
        fs::write(&trace, TRACE).with_context(|| format!("writing {}", trace.display()))?;
        let (file, bodies) = (folder.join("workload.ndjson"), folder.join("bodies"));
        let report = folder.join("workload.json");
        Command::new(&setting.programs.replay)
            .args(["workload", "mooncake", "--trace"])
            .arg(&trace)
            .args(["--minutes", &plan.minutes.to_string()])
            .args(["--speed-up", &plan.speed_up.to_string()])
            .arg("--bodies")
            .arg(&bodies)
            .arg("--out")
            .arg(&file)
            .arg("--report")
            .arg(&report)
            .watched()?;
        let text = fs::read(&report).with_context(|| format!("reading {}", report.display()))?;
        let facts = serde_json::from_slice(&text).context("what weir-replay says of it")?;
        Ok(Self {
            file,
            bodies,
            facts,
        })
    }
}
