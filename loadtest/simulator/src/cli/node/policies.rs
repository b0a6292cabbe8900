// SPDX-License-Identifier: Apache-2.0
//! The governor's policies on the command line.

use anyhow::Result;
use weir_sim::node::cell::Lab;
use weir_sim::node::policies;

use super::Model;

#[derive(clap::Args)]
pub(in crate::cli) struct Policies {
    #[command(flatten)]
    model: Model,
    /// So many seeds, from 1
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=1000))]
    seeds: u64,
    /// Of each run
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=1000))]
    minutes: u32,
}

impl Policies {
    pub(super) fn run(&self) -> Result<()> {
        for (name, load) in policies::loads() {
            let mut lab = Lab::new(self.model.params()?, self.seeds);
            println!(
                "| {name} | saved (MODEL) | W (MODEL) | p50 s (SIMULATED) | p99 s | over 1 s | plans/s |"
            );
            println!("|---|---|---|---|---|---|---|");
            for row in policies::rows(&mut lab, load, self.minutes) {
                println!(
                    "| {} | {:.1} % | {:.1} | {:.3} | {:.3} | {:.2} % | {:.0} |",
                    row.policy,
                    100.0 * row.saved,
                    row.watts,
                    row.p50,
                    row.p99,
                    100.0 * row.missed,
                    row.ticks
                );
            }
            println!();
        }
        Ok(())
    }
}
