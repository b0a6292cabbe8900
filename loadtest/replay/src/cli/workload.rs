// SPDX-License-Identifier: Apache-2.0
//! `weir-replay workload`.

mod azure_functions;
mod feeds;

use std::fs;
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::Context;
use clap::Subcommand;
use serde::Serialize;
use weir_replay::workload::{self, Request};

#[derive(Debug, Subcommand)]
pub(crate) enum Source {
    /// Azure Functions 2019: invocations per minute and percentiles of run time per function.
    AzureFunctions(azure_functions::AzureFunctions),
    /// A folder of feeds and rules: real requests for rule-processing hosts, at random times.
    Feeds(feeds::Feeds),
}

impl Source {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::AzureFunctions(args) => args.run(),
            Self::Feeds(args) => args.run(),
        }
    }
}

/// Writes the workload and, if a file is given for it, the report.
fn save(
    requests: &[Request],
    report: &impl Serialize,
    out: &Path,
    report_file: Option<&Path>,
) -> anyhow::Result<()> {
    let name = out.display();
    let write = || -> std::io::Result<()> {
        let mut out = BufWriter::new(fs::File::create(out)?);
        workload::write(requests, &mut out)?;
        out.flush()
    };
    write().with_context(|| format!("cannot write {name}"))?;
    if let Some(file) = report_file {
        let text = serde_json::to_string_pretty(report)? + "\n";
        fs::write(file, text).context("--report cannot be written")?;
    }
    Ok(())
}
