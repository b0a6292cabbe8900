// SPDX-License-Identifier: Apache-2.0
//! How fast jobs' cores may be: slower while the package is short of power and the service's cores are slow for it.
//!
//! ```text
//!  each 2 s:  power > 90 % and the service's cores below the guaranteed frequency    ──> jobs' cores a step slower
//!             power <= 90 % and they have it                                         ──> a step faster
//! ```
//! Of the watts that the packages are made for (TDP). Heracles, section 4.3, algorithm 3. How large a step is the paper does not say: here a tenth of a core's range.
//! Otherwise than there, all packages are looked at together, and the slowest of the service's cores counts.

use std::time::Duration;

use crate::node::Khz;
use crate::sensed::{Nanos, Resources};

/// Of the watts that the packages are made for.
const MOST: f64 = 0.9;
const EVERY: Duration = Duration::from_secs(2);
/// From the lowest frequency to the highest.
const STEPS: u32 = 10;

/// What the service shall have, and of what.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    /// Its cores' frequency, whatever jobs' cores draw.
    pub guaranteed: Khz,
    /// What all packages together are made for. None: what the machine says, and where it says nothing, jobs' cores
    /// stay as fast as they can.
    pub watts: Option<f64>,
}

/// What jobs' cores have.
#[derive(Debug)]
pub(super) struct Power {
    params: Params,
    steps: u32,
    decided: Option<Nanos>,
}

impl Power {
    /// Jobs' cores begin at their highest frequency.
    pub(super) fn new(params: Params) -> Self {
        Self {
            params,
            steps: STEPS,
            decided: None,
        }
    }

    /// Their highest frequency from now on: 0 is the lowest of the cores, 1 the highest. While power or frequency
    /// is not known it stays.
    pub(super) fn speed(&mut self, now: Nanos, seen: &Resources) -> f64 {
        let due = |last: Nanos| now.since(last) >= EVERY;
        let used = seen.watts.zip(self.params.watts);
        if let (Some((watts, most)), Some(slowest)) = (used, seen.slowest)
            && self.decided.is_none_or(due)
        {
            self.decided = Some(now);
            let (high, slow) = (watts > MOST * most, slowest < self.params.guaranteed);
            if high && slow {
                self.steps = self.steps.saturating_sub(1);
            } else if !high && !slow {
                self.steps = (self.steps + 1).min(STEPS);
            }
        }
        f64::from(self.steps) / f64::from(STEPS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Package {
        power: Power,
        second: u64,
    }

    impl Package {
        fn new() -> Self {
            let params = Params {
                guaranteed: Khz(2_000_000),
                watts: Some(100.0),
            };
            Self {
                power: Power::new(params),
                second: 0,
            }
        }

        /// After so many seconds of these watts, and of this frequency of the service's slowest core.
        fn after(&mut self, seconds: u64, watts: Option<f64>, mhz: Option<u32>) -> f64 {
            let seen = Resources {
                watts,
                slowest: mhz.map(|mhz| Khz(mhz * 1000)),
                ..Resources::default()
            };
            let mut speed = 0.0;
            for _ in 0..seconds {
                self.second += 1;
                speed = self.power.speed(Nanos(self.second * 1_000_000_000), &seen);
            }
            speed
        }
    }

    #[test]
    fn short_of_power_jobs_cores_get_slower_until_the_service_has_its_frequency() {
        let mut package = Package::new();
        assert_eq!(package.after(2, Some(50.0), Some(2000)), 1.0);
        assert_eq!(package.after(4, Some(95.0), Some(1900)), 0.8);
        // It has it: nothing more is taken, and nothing is given back before there is power.
        assert_eq!(package.after(10, Some(95.0), Some(2000)), 0.8);
        assert_eq!(package.after(2, Some(90.0), Some(2000)), 0.9);
        assert_eq!(package.after(60, Some(90.0), Some(2000)), 1.0);
        assert_eq!(package.after(60, Some(100.0), Some(1000)), 0.0);
    }

    #[test]
    fn a_slow_service_with_power_to_spare_is_not_slow_for_the_jobs() {
        assert_eq!(Package::new().after(60, Some(60.0), Some(1000)), 1.0);
    }

    #[test]
    fn what_is_not_known_changes_nothing() {
        let mut package = Package::new();
        assert_eq!(package.after(3, Some(95.0), Some(1000)), 0.8);
        assert_eq!(package.after(60, None, Some(2000)), 0.8);
        assert_eq!(package.after(60, Some(10.0), None), 0.8);
    }
}
