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

use crate::bench::section::Section;
use crate::bench::setting::Setting;

pub(crate) fn measure(setting: &Setting) -> Result<Vec<Section>> {
    Ok(vec![
        decisions::measure(setting)?,
        fan_out::measure(setting)?,
    ])
}

fn runtime() -> Result<Runtime> {
    Runtime::new().context("starting the threads that play hosts and sidecars")
}
