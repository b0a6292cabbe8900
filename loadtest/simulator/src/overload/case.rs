// SPDX-License-Identifier: Apache-2.0
//! How much is asked for, over time.

use std::ops::Range;
use std::time::Duration;

/// A while of constant load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Phase {
    /// How long.
    pub lasts: Duration,
    /// Work that comes, over what all cores can do.
    pub load: f64,
}

/// Phases, one after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct Case {
    /// What it is called.
    pub name: String,
    /// What happens.
    pub phases: Vec<Phase>,
    /// Of the requests so many have priority high, from 0 to 1.
    pub high_share: f64,
}

/// Of the requests have priority high, where nobody says more.
pub const HIGH_SHARE: f64 = 0.2;
/// The load before and after an overload.
const USUAL: f64 = 0.8;

impl Case {
    /// Constant load.
    #[must_use]
    pub fn constant(load: f64, lasts: Duration) -> Self {
        let name = format!("{load}x");
        let phases = vec![Phase { lasts, load }];
        Self {
            name,
            phases,
            high_share: HIGH_SHARE,
        }
    }

    /// The usual load, then so much more for a while, then the usual load again.
    #[must_use]
    pub fn surge(load: f64, lasts: Duration) -> Self {
        let usual = Phase {
            lasts: Duration::from_secs(60),
            load: USUAL,
        };
        Self {
            name: format!("{load}x for {} s", lasts.as_secs()),
            phases: vec![usual, Phase { lasts, load }, usual],
            high_share: HIGH_SHARE,
        }
    }

    /// How long requests come.
    #[must_use]
    pub fn lasts(&self) -> Duration {
        self.phases.iter().map(|phase| phase.lasts).sum()
    }

    /// When more comes than can be done, if it does.
    #[must_use]
    pub fn overload(&self) -> Option<Range<Duration>> {
        let mut from = Duration::ZERO;
        for phase in &self.phases {
            let to = from + phase.lasts;
            if phase.load > 1.0 {
                return Some(from..to);
            }
            from = to;
        }
        None
    }
}
