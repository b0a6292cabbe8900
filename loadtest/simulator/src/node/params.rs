// SPDX-License-Identifier: Apache-2.0
//! Every number of the model, in one place.

use weir_governor::energy::Power;

use crate::params::params;

params! {
    /// Our assumptions: fitted to document 002 by `weir-sim node fit` (`fitted`), or taken from elsewhere.
    Params: "a number above 0", > 0;
    /// Cores of socket 0, each with one search thread (sections 3.2.4 and 4.1).
    cores: 12.0,
    /// Of the index, a thread each (section 4.1).
    shards: 5.0,
    /// Milliseconds that a shard of a query of four terms takes at 2.6 GHz, on average (fitted).
    light_ms: 110.0,
    /// A query of n terms does (n / 4) to this power as much work (fitted; the recorded table has 1.6 from 4 to 21 terms).
    growth: 0.842,
    /// The recorded spread of queries of equal length is raised to this power (fitted; 1 is as recorded).
    spread: 1.3,
    /// Spread of the five shards of a query: sigma of a lognormal (fitted).
    shard_sigma: 0.076,
    /// Share of the work at 2.6 GHz that waits for memory and is no slower at lower frequencies (fitted).
    memory_share: 0.011,
    /// Exponent of the Zipf law of numbers of terms (fitted: section 4.1 names the law alone).
    zipf: 1.16,
    /// Share of the work within the hot function (section 3.2.1).
    hot_share: 0.7,
    /// Share of the work that the search thread does before it. The rest is done by other threads and delays no
    /// answer (fitted: the text has the 70 % alone).
    before_share: 0.018,
    /// Volts at 1.0 GHz, against those at 2.6 GHz (fitted).
    low_volts: 0.802,
    /// Watts of a working core at 2.6 GHz, without leakage (fitted).
    core_w: 6.54,
    /// Watts that a core leaks at the voltage of 2.6 GHz, working or in C1; it falls with the voltage (fitted).
    leak_w: 0.187,
    /// Watts of a core in C6.
    c6_w: 0.03,
    /// Watts of the package while every core is in C6 (fitted).
    package_w: 3.67,
    /// Watts that the package takes more while a core is not in C6: mesh, last-level cache, memory controllers (fitted).
    uncore_w: 10.8,
    /// Milliseconds that the document's agent stops a search thread for at each event, the mean of an exponential (fitted
    /// to section 4.5).
    agent_event_ms: 24.4,
    /// Milliseconds that one tick of the document's governor takes on a core (fitted to section 4.5).
    agent_tick_ms: 0.958,
    /// Nanoseconds of one of our events (seen: `node-governor/events`).
    event_ns: 60.0,
    /// Microseconds of one of our governor's ticks.
    tick_us: 20.0,
}

impl Params {
    /// Watts as the governor's attribution is told them.
    #[must_use]
    pub fn power(&self) -> Power {
        Power {
            core_watts: self.core_w,
            leak_watts: self.leak_w,
            low_volts: self.low_volts,
            idle_watts: self.c6_w,
            package_watts: self.package_w,
            awake_watts: self.uncore_w,
        }
    }

    /// Share of the work that other threads than the search threads do.
    pub(super) fn aside_share(&self) -> f64 {
        (1.0 - self.hot_share - self.before_share).max(0.0)
    }
}
