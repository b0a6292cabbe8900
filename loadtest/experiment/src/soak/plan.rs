// SPDX-License-Identifier: Apache-2.0
//! Length of a soak, and between its samples.

use std::time::Duration;

/// Slopes of less are those of warming up.
const LEAST_JUDGED: Duration = Duration::from_secs(600);

/// How long, and what is made of it.
#[derive(Debug, Clone, Copy)]
pub struct Plan {
    /// Of the load and the churn.
    pub length: Duration,
    /// Between two samples.
    pub every: Duration,
    /// Slopes are judged: too short a run has none that says anything.
    pub judged: bool,
}

impl Plan {
    /// A run of this length.
    #[must_use]
    pub fn of(length: Duration) -> Self {
        Self {
            length,
            every: Duration::from_secs(5),
            judged: length >= LEAST_JUDGED,
        }
    }
}
