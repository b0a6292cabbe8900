// SPDX-License-Identifier: Apache-2.0
//! One machine on the command line.

mod document002;
mod run;

use anyhow::{Result, anyhow};
use clap::Subcommand;
use weir_sim::node::{Params, report};

#[derive(Subcommand)]
pub(super) enum Node {
    /// Play one run and print its figures as JSON
    Run(run::Args),
    /// What document 002 says beside what the model says
    #[command(name = "document-002")]
    Document002(document002::Report),
    /// Document 002's figure 4.1: the index in other numbers of shards
    Shards(document002::Report),
    /// Changes of frequency beside service times, which document 000 concludes on
    #[command(name = "document-000")]
    Document000(document002::Report),
    /// All policies side by side, and somebody who knows the work
    Policies(document002::Report),
    /// The governor's attribution of energy by class, beside the truth
    Energy(document002::Report),
    /// All policies beside the kernel's schedutil: energy and p99
    Schedutil(document002::Report),
    /// Document 002, all policies, energy, and a taste: what NODE.md has
    Report(document002::Report),
    /// Search for the numbers that bring out what document 002 says
    Fit(document002::Fit),
}

impl Node {
    pub(super) fn run(&self) -> Result<()> {
        match self {
            Self::Run(args) => args.run(),
            Self::Document002(args) => args.run(report::document002),
            Self::Shards(args) => args.run(report::shards),
            Self::Document000(args) => args.run(report::document000),
            Self::Policies(args) => args.run(report::policies),
            Self::Energy(args) => args.run(report::energy),
            Self::Schedutil(args) => args.run(report::schedutil),
            Self::Report(args) => args.run(report::text),
            Self::Fit(args) => args.run(),
        }
    }
}

#[derive(clap::Args)]
struct Model {
    /// NAME=VALUE: a number of the model; repeatable
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
}

impl Model {
    fn params(&self) -> Result<Params> {
        let mut params = Params::default();
        for text in &self.set {
            let form = || anyhow!("--set {text}: is not like light_ms=85");
            let (name, value) = text.split_once('=').ok_or_else(form)?;
            params.set(name, value.parse().map_err(|_| form())?)?;
        }
        Ok(params)
    }
}
