// SPDX-License-Identifier: Apache-2.0
//! Which part of a recorded trace is taken, and how fast.

use weir_replay::units;

#[derive(Debug, clap::Args)]
pub(super) struct Excerpt {
    /// First minute to take, counted from t_ms = 0.
    #[arg(long, value_name = "MIN", default_value_t = 0, value_parser = clap::value_parser!(u64).range(..1_000_000))]
    pub(super) from: u64,
    /// Minutes to take.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub(super) minutes: u64,
    /// Divide all times by this.
    #[arg(long, default_value = "1", value_parser = units::positive)]
    pub(super) speed_up: f64,
}
