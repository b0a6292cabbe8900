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

/// Where requests are from.
pub(super) struct Source {
    pub(super) name: &'static str,
    /// A part of the program, so that it can be repeated from anywhere.
    file: &'static [u8],
    /// It stands still for so long.
    clock: &'static str,
}

pub(super) const MOONCAKE: Source = Source {
    name: "Mooncake conversation trace",
    file: include_bytes!("../../../../traces/mooncake_conversation_10min.csv.gz"),
    clock: "3s",
};
/// Prompts have nothing in common, as far as is known.
pub(super) const AZURE: Source = Source {
    name: "Azure LLM conversation trace of 2023 (without keys: no prompt shares anything)",
    file: include_bytes!("../../../../traces/azure_llm2023_conv_15min.csv.gz"),
    clock: "1ms",
};

/// The priority of a share of the sessions; the others are `low`.
pub(super) const IMPORTANT: &str = "high";

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
    /// Of whose sessions this share is important.
    pub(super) fn make(
        setting: &Setting,
        plan: &Plan,
        important: f64,
        folder: &Path,
    ) -> Result<Self> {
        eprintln!("inference: writing the prompts of {} minutes", plan.minutes);
        fs::create_dir_all(folder).with_context(|| format!("creating {}", folder.display()))?;
        let trace = folder.join("trace.csv.gz");
        fs::write(&trace, plan.source.file)
            .with_context(|| format!("writing {}", trace.display()))?;
        let (file, bodies) = (folder.join("workload.ndjson"), folder.join("bodies"));
        let report = folder.join("workload.json");
        Command::new(&setting.programs.replay)
            .args(["workload", "mooncake", "--trace"])
            .arg(&trace)
            .args(["--minutes", &plan.minutes.to_string()])
            .args(["--speed-up", &plan.speed_up.to_string()])
            .args(["--clock", plan.source.clock])
            .args(["--high-share", &important.to_string()])
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

/// The requests of a workload that are important, at their moments.
pub(super) fn important(workload: &str) -> Result<Vec<&str>> {
    #[derive(Deserialize)]
    struct Line {
        priority: String,
    }
    let parse = |line| -> Result<_> { Ok((line, serde_json::from_str::<Line>(line)?.priority)) };
    let lines = workload.lines().map(parse).collect::<Result<Vec<_>>>();
    let lines = lines.context("the workload's priorities")?.into_iter();
    let of = lines.filter(|(_, priority)| priority == IMPORTANT);
    Ok(of.map(|(line, _)| line).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_important_ones_keep_their_lines() {
        let high = r#"{"t_us":5,"priority":"high"}"#;
        let workload = format!("{{\"t_us\":1,\"priority\":\"low\"}}\n{high}\n");
        assert_eq!(important(&workload).unwrap(), [high]);
        assert!(important("x").is_err());
    }
}
