// SPDX-License-Identifier: Apache-2.0
//! Where what was made goes.

use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;
use weir_replay::workload::{self, Request};

#[derive(Debug, clap::Args)]
pub(super) struct Output {
    /// Where to write the workload (NDJSON).
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Also write what was made, and from what, as JSON.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
}

impl Output {
    /// Writes the workload and, if a file is given for it, the report.
    pub(super) fn save(&self, requests: &[Request], report: &impl Serialize) -> anyhow::Result<()> {
        workload::save(requests, &self.out)
            .with_context(|| format!("cannot write {}", self.out.display()))?;
        if let Some(file) = &self.report {
            let text = serde_json::to_string_pretty(report)? + "\n";
            weir_whole_file::write(file, text).context("--report cannot be written")?;
        }
        Ok(())
    }
}
