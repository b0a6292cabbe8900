// SPDX-License-Identifier: Apache-2.0
//! Which part of a recorded trace is taken, how fast, and whom it is to keep busy.

use std::ops::Range;

use serde::Serialize;

use crate::units;

/// Some minutes of a trace.
#[derive(Debug, Clone, clap::Args, Serialize)]
pub struct Excerpt {
    /// First minute to take, counted from t_ms = 0.
    #[arg(long = "from", value_name = "MIN", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..1_000_000))]
    pub from_minute: u64,
    /// Minutes to take.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub minutes: u64,
    /// Divide all times by this.
    #[arg(long, default_value = "1", value_parser = units::positive)]
    pub speed_up: f64,
}

impl Excerpt {
    /// Minutes of the source.
    #[must_use]
    pub fn window(&self) -> Range<u64> {
        self.from_minute..self.from_minute + self.minutes
    }

    /// Of the workload, in seconds.
    #[must_use]
    pub fn duration_s(&self) -> f64 {
        self.minutes as f64 * 60.0 / self.speed_up
    }
}

/// Hosts that will serve a workload, all alike.
#[derive(Debug, Clone, clap::Args, Serialize)]
pub struct Fleet {
    /// Hosts that will serve the workload.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub hosts: u32,
    /// Cores of each host.
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    pub cores: u32,
}

impl Fleet {
    /// Of all hosts.
    #[must_use]
    pub fn all_cores(&self) -> f64 {
        f64::from(self.hosts) * f64::from(self.cores)
    }
}
