// SPDX-License-Identifier: Apache-2.0
//! How much is measured.

use std::time::Duration;

/// Sizes of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// How often each way.
    pub repeats: u32,
    /// CPU time of a job, for each second that document 004 measured.
    pub scale: f64,
    /// For each measurement of the calibration.
    pub calibrate: Duration,
    /// Figures of memcached are told so often.
    pub interval: Duration,
    /// For all jobs of a way, also on a machine where others take most of both cores.
    pub patience: Duration,
}

impl Plan {
    /// What is published, in less than 5 minutes on idle cores; three times, as in document 004.
    pub const FULL: Self = Self {
        repeats: 3,
        scale: 0.02,
        calibrate: Duration::from_secs(3),
        interval: Duration::from_millis(500),
        patience: Duration::from_secs(300),
    };
    /// A taste, in about a minute.
    pub const QUICK: Self = Self {
        repeats: 1,
        scale: 0.01,
        calibrate: Duration::from_secs(1),
        interval: Duration::from_millis(500),
        patience: Duration::from_secs(300),
    };
}
