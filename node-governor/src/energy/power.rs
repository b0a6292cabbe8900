// SPDX-License-Identifier: Apache-2.0
//! What a core takes in a state: a MODEL. A core that works takes C·V²·f and leakage, with V linear in f
//! (Medeiros, *Profile-guided frequency scaling for search workloads*, section 2.1).

use super::Khz;

/// Watts by state. The defaults are those that the simulator is fitted to document 002's processor with, a Xeon Gold
/// 6126 at 1.0 to 2.6 GHz (`loadtest/simulator/src/node/params.rs`).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Power {
    /// Of a working core at the highest frequency, without leakage.
    pub core_watts: f64,
    /// What a core leaks at the voltage of the highest frequency; it falls with the voltage.
    pub leak_watts: f64,
    /// Voltage at the lowest frequency, against that at the highest.
    pub low_volts: f64,
    /// Of an idle core.
    pub idle_watts: f64,
    /// Of the package, whatever happens.
    pub package_watts: f64,
    /// What the package takes more while a core is busy.
    pub awake_watts: f64,
}

impl Default for Power {
    fn default() -> Self {
        Self {
            core_watts: 6.54,
            leak_watts: 0.187,
            low_volts: 0.802,
            idle_watts: 0.03,
            package_watts: 3.67,
            awake_watts: 10.8,
        }
    }
}

impl Power {
    /// Of a core that works.
    pub fn active(&self, khz: Khz, lowest: Khz, highest: Khz) -> f64 {
        let share = f64::from(khz.0) / f64::from(highest.0.max(1));
        let volts = self.volts(khz, lowest, highest);
        self.core_watts * volts.powi(2) * share + self.leak(khz, lowest, highest)
    }

    /// What a core leaks at the voltage of a frequency.
    pub fn leak(&self, khz: Khz, lowest: Khz, highest: Khz) -> f64 {
        self.leak_watts * self.volts(khz, lowest, highest)
    }

    fn volts(&self, khz: Khz, lowest: Khz, highest: Khz) -> f64 {
        let width = f64::from(highest.0.saturating_sub(lowest.0).max(1));
        let up = f64::from(khz.0.saturating_sub(lowest.0)) / width;
        self.low_volts + (1.0 - self.low_volts) * up.min(1.0)
    }
}
