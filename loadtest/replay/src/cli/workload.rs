// SPDX-License-Identifier: Apache-2.0
//! `weir-replay workload`.

mod azure_functions;
mod excerpt;
mod feeds;
mod mooncake;
mod output;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Source {
    /// Azure Functions 2019: invocations per minute and percentiles of run time per function.
    AzureFunctions(azure_functions::AzureFunctions),
    /// Mooncake 2024: requests to a language model, and which blocks their prompts begin with.
    Mooncake(mooncake::Mooncake),
    /// A folder of feeds and rules: real requests for rule-processing hosts, at random times.
    Feeds(feeds::Feeds),
}

impl Source {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::AzureFunctions(args) => args.run(),
            Self::Mooncake(args) => args.run(),
            Self::Feeds(args) => args.run(),
        }
    }
}
