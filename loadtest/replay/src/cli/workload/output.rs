// SPDX-License-Identifier: Apache-2.0
//! Where what was made goes.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use serde::Serialize;
use weir_replay::workload::{self, Request};
use weir_whole_file::WholeFile;

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
        let name = self.out.display();
        let write = || -> std::io::Result<()> {
            let mut out = WholeFile::create(&self.out)?;
            workload::write(requests, &mut out)?;
            out.finish()
        };
        write().with_context(|| format!("cannot write {name}"))?;
        if let Some(file) = &self.report {
            let text = serde_json::to_string_pretty(report)? + "\n";
            let write = || {
                let mut out = WholeFile::create(file)?;
                out.write_all(text.as_bytes())?;
                out.finish()
            };
            write().context("--report cannot be written")?;
        }
        Ok(())
    }
}
