// SPDX-License-Identifier: Apache-2.0
//! The static circuit breaker of document 001, section 9.1.2.

use crate::{Level, Load};

/// The threshold at which document 001 saw no overloaded server in its 10-minute tests (section 9.1.2).
pub const QUEUED_JOBS: u32 = 100;

/// Open (nothing admitted) while more than `queued_jobs` wait.
pub(crate) fn level(load: Option<&Load>, queued_jobs: u32) -> Level {
    match load {
        Some(load) if load.queued > queued_jobs => Level::NONE,
        _ => Level::ALL,
    }
}
