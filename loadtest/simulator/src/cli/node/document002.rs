// SPDX-License-Identifier: Apache-2.0
//! Document 002 on the command line.

use anyhow::Result;
use weir_sim::node::Params;
use weir_sim::node::cell::Lab;
use weir_sim::node::document002::{experiments, facts, fit, report};

use super::Model;

fn flags(params: &Params) -> String {
    let default = Params::default();
    let changed = Params::NAMES.iter().filter_map(|name| {
        let value = params.get(name)?;
        (Some(value) != default.get(name)).then(|| format!(" --set {name}={value:.4}"))
    });
    changed.collect()
}

#[derive(clap::Args)]
pub(in crate::cli) struct Document002 {
    #[command(flatten)]
    model: Model,
    /// So many seeds, from 1
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
}

impl Document002 {
    pub(super) fn run(&self) -> Result<()> {
        let mut lab = Lab::new(self.model.params()?, self.seeds);
        let facts = facts::facts(&mut lab, false);
        println!("{}", report::markdown(&report::facts_table(&facts)));
        for experiment in experiments::experiments() {
            println!(
                "## Section {}: {}\n{}\n",
                experiment.section, experiment.title, experiment.said
            );
            println!(
                "{}",
                report::markdown(&report::table(&mut lab, &experiment))
            );
        }
        Ok(())
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
        let best = fit::climb(
            &self.model.params()?,
            self.seeds,
            self.tries,
            self.seed,
            tell,
        );
        println!("weir-sim node document-002{}", flags(&best));
        Ok(())
    }
}
