// SPDX-License-Identifier: Apache-2.0
//! Document 004 on the command line.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, anyhow};
use weir_sim::colocation::{Params, fit, plots, report};
use weir_whole_file::WholeFile;

#[derive(clap::Args)]
pub(super) struct Document004 {
    /// NAME=VALUE: a parameter that neither the document nor a trace gives; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// So many seeds, from 1
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    seeds: u64,
    /// Fit the jobs' core seconds first, and tell them
    #[arg(long)]
    fit: bool,
    /// Write the Markdown there, too
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Draw its figures 1 to 3 and 9 to 20 there instead, as one HTML page
    #[arg(long, value_name = "FILE", conflicts_with = "out")]
    plots: Option<PathBuf>,
}

impl Document004 {
    pub(super) fn run(&self) -> Result<()> {
        let mut params = Params::default();
        for text in &self.set {
            let form = || anyhow!("--set {text}: is not like antagonism=0.1");
            let (name, value) = text.split_once('=').ok_or_else(form)?;
            params.set(name, value.parse().map_err(|_| form())?)?;
        }
        if self.fit {
            params = fit(&params, self.seeds);
        }
        let flags = flags(&params);
        if let Some(path) = &self.plots {
            let command = format!("weir-sim document-004 --plots FILE{flags}");
            return Ok(plots::page(&params, &command).write(path)?);
        }
        let text = format!(
            "# Document 004, SIMULATED\n\nWritten by `weir-sim document-004 --seeds {}{flags}`: means of seeds 1 to {}. \
             What is modelled, fitted and held back is in [DESIGN.md](DESIGN.md#document-004).\n\n{}",
            self.seeds,
            self.seeds,
            report::markdown(&params, self.seeds)
        );
        print!("{text}");
        if let Some(path) = &self.out {
            let named = || path.display().to_string();
            let mut out = WholeFile::create(path).with_context(named)?;
            out.write_all(text.trim_end().as_bytes())
                .with_context(named)?;
            out.write_all(b"\n").with_context(named)?;
            out.finish().with_context(named)?;
        }
        Ok(())
    }
}

/// What differs from the defaults.
fn flags(params: &Params) -> String {
    let default = Params::default();
    let changed = Params::NAMES.iter().filter_map(|name| {
        let value = params.get(name)?;
        (Some(value) != default.get(name)).then(|| format!(" --set {name}={value}"))
    });
    changed.collect()
}
