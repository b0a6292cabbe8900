// SPDX-License-Identifier: Apache-2.0
//! How large the fleet is.

use clap::Args;
use serde::Serialize;

/// The fleet.
#[derive(Debug, Clone, Args, Serialize)]
pub(crate) struct Plan {
    /// Sidecars, EMULATED
    #[arg(long, default_value_t = 1000, value_parser = most(10_000))]
    pub(crate) sidecars: usize,
    /// Hosts, EMULATED, whose figures change once a second
    #[arg(long, default_value_t = 200, value_parser = most(10_000))]
    pub(crate) hosts: usize,
    /// Keys in each host's cache, of which one is replaced each second; 0: caches are not asked
    #[arg(long, default_value_t = 0)]
    pub(crate) keys: u64,
    /// Requests that each of a sidecar's two workers sends a second
    #[arg(long, default_value_t = 2)]
    pub(crate) requests: usize,
    /// For which CPU is counted
    #[arg(long, default_value_t = 60)]
    pub(crate) seconds: u64,
    /// For which it runs before
    #[arg(long, default_value_t = 10)]
    pub(crate) settle: u64,
}

/// 1 to this many.
fn most(most: usize) -> impl Fn(&str) -> Result<usize, String> + Clone {
    move |text| match text.parse() {
        Ok(number) if (1..=most).contains(&number) => Ok(number),
        _ => Err(format!("not a number from 1 to {most}")),
    }
}
