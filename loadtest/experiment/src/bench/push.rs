// SPDX-License-Identifier: Apache-2.0
//! The part about news of hosts: how soon sidecars decide by it, and what it costs to tell a
//! thousand of them.

mod crowd;
mod decisions;
mod fan_out;
mod receipts;
mod sidecar;

use anyhow::{Context, Result};
use tokio::runtime::Runtime;

use crate::bench::Bench;
use crate::bench::section::Section;

pub(crate) fn measure(bench: &Bench) -> Result<Vec<Section>> {
    Ok(vec![decisions::measure(bench)?, fan_out::measure(bench)?])
}

fn runtime() -> Result<Runtime> {
    Runtime::new().context("starting the threads that play hosts and sidecars")
}
