// SPDX-License-Identifier: Apache-2.0
//! How much is measured.

use std::time::Duration;

/// A step of the load, and how long each of the two loads lasts with it.
#[derive(Clone, Copy, Debug)]
pub struct Stepping {
    /// A new rate is drawn so often.
    pub interval: Duration,
    /// Of the light load and of the heavy one, each.
    pub length: Duration,
}

/// Sizes of a measurement.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// One round for each, of all ways.
    pub steppings: &'static [Stepping],
    /// How often all of that.
    pub repeats: u32,
    /// CPU time that each job is to take: together less than the light load's time, as its one core that memcached can
    /// spare is enough to end them while there is load.
    pub job: Duration,
    /// For each measurement of the calibration.
    pub calibrate: Duration,
    /// For the jobs that are left when the load is over.
    pub patience: Duration,
}

const fn stepping(interval: u64, length: u64) -> Stepping {
    Stepping {
        interval: Duration::from_secs(interval),
        length: Duration::from_secs(length),
    }
}

impl Plan {
    /// What is published, in less than 30 minutes: the steps are those of document 004 and one below.
    pub const FULL: Self = Self {
        steppings: &[
            stepping(10, 30),
            stepping(6, 24),
            stepping(5, 25),
            stepping(3, 24),
        ],
        repeats: 1,
        job: Duration::from_secs(6),
        calibrate: Duration::from_secs(3),
        patience: Duration::from_secs(180),
    };
    /// A taste, in less than 5 minutes.
    pub const QUICK: Self = Self {
        steppings: &[stepping(3, 9)],
        repeats: 1,
        job: Duration::from_secs(2),
        calibrate: Duration::from_secs(2),
        patience: Duration::from_secs(120),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_jobs_end_on_a_core_that_the_light_load_spares() {
        // stress-ng, x264 and zstd, one after another.
        let jobs = 3;
        for plan in [Plan::FULL, Plan::QUICK] {
            for stepping in plan.steppings {
                assert!(plan.job * jobs < stepping.length, "{plan:?}");
            }
        }
    }
}
