// SPDX-License-Identifier: Apache-2.0
//! `weir-replay workload`.

mod azure_functions;
mod feeds;
mod flash_crowd;
mod mooncake;
mod nasa;
mod output;
mod scenario;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Source {
    /// Azure Functions 2019: invocations per minute and percentiles of run time per function.
    AzureFunctions(azure_functions::AzureFunctions),
    /// Mooncake 2024: requests to a language model, and which blocks their prompts begin with.
    Mooncake(mooncake::Mooncake),
    /// NASA 1995: a web log, with pages, sizes and clients.
    Nasa(nasa::Nasa),
    /// World Cup 1998, or any other requests per minute: how a crowd comes.
    FlashCrowd(flash_crowd::FlashCrowd),
    /// A folder of feeds and rules: real requests for rule-processing hosts, at random times.
    Feeds(feeds::Feeds),
    /// A scenario of loadtest/scenarios, which k6 sends too.
    Scenario(scenario::Scenario),
}

impl Source {
    pub(crate) fn run(self) -> anyhow::Result<()> {
        match self {
            Self::AzureFunctions(args) => args.run(),
            Self::Mooncake(args) => args.run(),
            Self::Nasa(args) => args.run(),
            Self::FlashCrowd(args) => args.run(),
            Self::Feeds(args) => args.run(),
            Self::Scenario(args) => args.run(),
        }
    }
}
