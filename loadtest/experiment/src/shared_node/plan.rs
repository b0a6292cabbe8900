// SPDX-License-Identifier: Apache-2.0
//! How much of everything.

use std::time::Duration;

use serde::Serialize;

/// The same for every way.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Plan {
    /// What the service can do on one core, times this,
    pub load: f64,
    /// for so long, before the calm and after it.
    pub over: Duration,
    /// While the batch job is to have its core: times this,
    pub calm_load: f64,
    /// for so long.
    pub calm: Duration,
    /// How often each way is run.
    pub rounds: u32,
}

impl Plan {
    /// Within ten minutes.
    pub const FULL: Self = Self {
        load: 1.3,
        over: Duration::from_secs(18),
        calm_load: 0.5,
        calm: Duration::from_secs(14),
        rounds: 2,
    };
    /// Within two minutes.
    pub const QUICK: Self = Self {
        load: 1.3,
        over: Duration::from_secs(6),
        calm_load: 0.5,
        calm: Duration::from_secs(5),
        rounds: 1,
    };

    /// Of the three parts together.
    #[must_use]
    pub fn length(&self) -> Duration {
        2 * self.over + self.calm
    }

    /// How many times one core's work comes at this moment.
    #[must_use]
    pub fn load_at(&self, at: Duration) -> f64 {
        match at >= self.over && at < self.over + self.calm {
            true => self.calm_load,
            false => self.load,
        }
    }
}
