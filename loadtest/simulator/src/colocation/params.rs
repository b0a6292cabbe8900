// SPDX-License-Identifier: Apache-2.0
//! Every number that neither document 004 nor a trace gives, in one place.

use crate::params::params;

params! {
    /// Assumptions and what was fitted; [`super::report`] says which is which.
    Params: "a number from 0 on", >= 0;
    /// Core seconds of each job on one core of part 4's node, fitted to its times at 10 s.
    dedup_s: 79.7,
    /// See `dedup_s`.
    blackscholes_s: 313.0,
    /// See `dedup_s`.
    ferret_s: 1710.3,
    /// See `dedup_s`.
    freqmine_s: 897.2,
    /// See `dedup_s`.
    canneal_s: 367.7,
    /// See `dedup_s`.
    fft_s: 121.6,
    /// Seconds from a job's start until it works: what part 3's total has above the times on its 8 cores, over three.
    start_s: 3.9,
    /// Seconds that a job loses each time it goes on, because its core is nobody's while the service leaves it and the
    /// job is thawed: medians of a write of `cpuset.cpus` (1.9 ms) and of a freeze (0.4 ms), measured on a virtual
    /// machine of two cores. That its caches are cold is left out.
    resume_s: 0.0023,
    /// Of the slowdown that iBench's antagonist of the last-level cache causes, what a job on other cores causes.
    antagonism: 0.1,
    /// What a job on the same cores causes beyond its share of them: as much as the antagonist.
    antagonism_shared: 1.0,
    /// Requests a second that one core can do: where the scan with one core ends.
    capacity: 78000.0,
    /// Use of a core is (load / capacity) to this power: few requests at a time cost more each. Fitted to the shares
    /// of violations of all three intervals.
    use_power: 0.645,
    /// Times as long as in the scan is the tail of one core that has more to do than it can: the document says that
    /// one core with two threads breaks the objective there, not by how much.
    saturated_slow: 1.5,
    /// Spread of the p95 from interval to interval: sigma of a lognormal, as between the scan's runs.
    p95_sigma: 0.04,
    /// Spread of one reading of the CPU's use: sigma of a lognormal.
    use_sigma: 0.03,
    /// Seconds from one look of document 004's scheduler to the next. Part 4 does not say; that of part 3 looks every
    /// second.
    document_tick_s: 1.0,
    /// Seconds from the look until the cores have changed, in document 004's scheduler.
    document_act_s: 0.05,
    /// Seconds from one look of the governor to the next.
    governor_tick_s: 0.05,
    /// Seconds from the look until the cores have changed, in the governor.
    governor_act_s: 0.005,
    /// Seconds of requests that a p95 is taken from.
    p95_window_s: 0.5,
}
