// SPDX-License-Identifier: Apache-2.0
//! Document 002 and all policies on the command line.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use weir_sim::node::Params;
use weir_sim::node::cell::Lab;
use weir_sim::node::document002::fit;
use weir_whole_file::WholeFile;

use super::Model;

#[derive(clap::Args)]
pub(in crate::cli) struct Report {
    #[command(flatten)]
    model: Model,
    /// So many seeds, from 1
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Write it there instead
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

impl Report {
    pub(super) fn run(&self, of: fn(&mut Lab) -> String) -> Result<()> {
        let text = of(&mut Lab::new(self.model.params()?, self.seeds));
        let Some(path) = &self.out else {
            print!("{text}");
            return Ok(());
        };
        let named = || path.display().to_string();
        let mut out = WholeFile::create(path).with_context(named)?;
        out.write_all(text.as_bytes()).with_context(named)?;
        out.finish().with_context(named)
    }
}

#[derive(clap::Args)]
pub(in crate::cli) struct Fit {
    #[command(flatten)]
    model: Model,
    /// So many seeds, from 1
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Moves tried
    #[arg(long, default_value_t = 100)]
    tries: u32,
    /// Of the search
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

impl Fit {
    pub(super) fn run(&self) -> Result<()> {
        let tell = |number: u32, distance: f64, params: &Params| {
            eprintln!("try {number}: distance {distance:.4}{}", flags(params));
        };
        let start = self.model.params()?;
        let best = fit::climb(&start, self.seeds, self.tries, self.seed, tell);
        println!("weir-sim node document-002{}", flags(&best));
        Ok(())
    }
}

/// What differs from the defaults.
fn flags(params: &Params) -> String {
    let default = Params::default();
    let changed = Params::NAMES.iter().filter_map(|name| {
        let value = params.get(name)?;
        (Some(value) != default.get(name)).then(|| format!(" --set {name}={value:.4}"))
    });
    changed.collect()
}
