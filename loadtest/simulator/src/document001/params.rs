// SPDX-License-Identifier: Apache-2.0
//! Every number that the text does not give, in one place.

use crate::params::params;

/// Requests of 24 hours (section 8.1.1).
pub(super) const REQUESTS: f64 = 2_879_676.0;
/// Of the web backend's requests, those that need the end of an earlier one (section 7.4.7).
pub(super) const DEPENDENT: f64 = 0.15;
/// Rule processing servers (section 7.1).
pub(super) const HOSTS: usize = 14;
/// Of them preemptible in production (section 7.4.4).
pub(super) const PREEMPTIBLE: usize = 10;

params! {
    /// Our assumptions: the text says that these things are so, not by how much. Those that
    /// [`super::fit`] moves are fitted to the production rows of tables 4 and 5.
    Params: "a number above 0", > 0;
    /// Share of the requests with priority high.
    high_share: 0.3,
    /// Bytes of the median project's data.
    median_bytes: 3e6,
    /// Spread of the projects' sizes: sigma of a lognormal ("hundreds of items to millions", 4.1.2).
    size_sigma: 1.75,
    /// Core seconds of the median request of the median project.
    run_s: 0.475,
    /// Spread of the requests of one project: sigma of a lognormal.
    run_sigma: 1.64,
    /// A request of priority high is so many times one of priority low.
    high_run: 1.4,
    /// Spread of those of priority high.
    high_run_sigma: 1.52,
    /// Larger ones went to a server of their own (section 8.2.3): core seconds.
    run_max_s: 520.0,
    /// The same of priority high: 120 s of evaluation (listing 1), on two cores.
    high_run_max_s: 210.0,
    /// Part of a request that the shared rules take.
    shared_part: 0.25,
    /// Part of a request that the writing of its answer takes, on one core.
    output_part: 0.15,
    /// Cores that the rules can use.
    usable_cores: 3.0,
    /// Cores of a server.
    cores: 26.0,
    /// Bytes of a server's cache.
    cache_bytes: 1e11,
    /// Seconds to the first byte of the item store.
    fetch_base_s: 0.05,
    /// Bytes a second of a fetch.
    fetch_rate: 5e7,
    /// Exponent of the number of channels: P(more than n) = n^-x ("a single one to hundreds", 4.1.2).
    channel_tail: 1.3,
    /// Channels at most.
    channels_max: 150.0,
    /// Of the projects: those that run every 15 minutes (4.1.2 names the intervals, not the shares).
    quarter_share: 0.03,
    /// Those that run every hour.
    hour_share: 0.17,
    /// Those that run every four hours; the others run once a day.
    four_hours_share: 0.25,
    /// Share of the schedules that stand on a full hour or quarter.
    piled_share: 0.2,
    /// Mean seconds from a schedule's time until a worker has imported the data.
    import_s: 200.0,
    /// Mean seconds from one channel's request to the next.
    channel_gap_s: 2.5,
    /// Share of the runs before which the data have changed.
    changed_share: 0.5,
    /// Mean number of a session's previews; a prefetch comes first (3.2).
    previews: 12.0,
    /// Mean seconds from one preview to the next.
    think_s: 20.0,
    /// Share of the sessions that end with a run by hand, of all channels with priority high.
    manual_share: 0.07,
    /// By so much sessions at noon outnumber the mean, and at midnight fall short of it.
    daily_swing: 0.65,
    /// Jobs that wait for a core at a server that takes no connection within the time-out: 400 raise
    /// an alarm (9.1.2).
    deaf_at: 400.0,
    /// Seconds of the connection time-out (7.4.3 names it, without a value).
    connect_timeout_s: 3.0,
    /// Seconds that a server may take to accept before it passes for unhealthy (9.1: a server so overloaded
    /// that its metrics cannot be read).
    healthy_s: 10.0,
    /// The breaker opens at so many stalled promises of a server: the search of section 9.1.2 went from 400, which raise
    /// an alarm, down to this.
    breaker_at: 100.0,
    /// Seconds that a job may wait for its first joblet: the maxima of table 5 are 239.6 to 242.2.
    queue_timeout_s: 240.0,
}
