// SPDX-License-Identifier: Apache-2.0
//! How large the demonstration is, as data.

use std::time::Duration;

use weir_replay::azure;
use weir_replay::excerpt::{Excerpt, Fleet};
use weir_replay::feeds::{self, Rate};

/// Starting the processes of a way and letting the last answers come, where hosts keep up.
pub(crate) const AROUND: Duration = Duration::from_secs(6);

/// The same for every way.
pub(crate) struct Plan {
    /// What the hosts do.
    pub(crate) work: Work,
    /// How long the workload lasts for each way.
    pub(crate) replay: Duration,
    /// A caller that has no good answer by then gives up. As long as a way may go on after its
    /// last request was sent.
    pub(crate) deadline: Duration,
    pub(crate) hosts: usize,
    pub(crate) cores: usize,
    /// Each host's cache: holds a part of the data, so that where requests go decides what is
    /// found there.
    pub(crate) cache_bytes: &'static str,
    pub(crate) limits: Limits,
}

/// What the hosts do, and for whom.
pub(crate) enum Work {
    /// They sleep for as long as a recorded trace says.
    Emulated(Trace),
    /// They apply rules to feeds.
    Real(Feeds),
}

/// Minutes of the recorded trace.
pub(crate) struct Trace {
    /// Its name in `loadtest/traces`.
    pub(crate) name: &'static str,
    /// The first minute as time of the day.
    pub(crate) from_clock: &'static str,
    pub(crate) params: azure::Params,
    /// Absent data comes with this bandwidth, and keeps a core busy meanwhile.
    pub(crate) fetch_bytes_per_second: &'static str,
}

/// Generated projects, and how often somebody wants something of them.
pub(crate) struct Feeds {
    pub(crate) projects: u32,
    pub(crate) items_min: u32,
    pub(crate) items_max: u32,
    /// Kinds of requests of a project, at most.
    pub(crate) channels_max: u32,
    pub(crate) format: &'static str,
    pub(crate) params: feeds::Params,
}

impl Feeds {
    /// So few that two real cores can do them, wanted for so long.
    pub(crate) fn small(duration: Duration) -> Self {
        Self {
            projects: 24,
            items_min: 4000,
            items_max: 60_000,
            channels_max: 3,
            format: "parquet",
            params: feeds::Params {
                rate: Rate {
                    from: 30.0,
                    to: 30.0,
                },
                duration,
                zipf: 0.8,
                high_share: 0.2,
                users: false,
                seed: 1,
            },
        }
    }
}

/// Where Weir's defaults are for other hosts than these.
pub(crate) struct Limits {
    pub(crate) breaker_queued_jobs: u32,
    pub(crate) dagor_threshold: &'static str,
    /// Share of the admitted requests that one window of a second sheds or adds. The paper's 5 %
    /// and 1 % are for services that run for hours: here a host that got twice its share would shed
    /// for half of the time.
    pub(crate) dagor_step: f64,
}

impl Plan {
    pub(crate) fn emulated(quick: bool) -> Self {
        let part = if quick { 4 } else { 1 };
        Self {
            deadline: Duration::from_secs(15) / if quick { 2 } else { 1 },
            ..Self::of_trace(part, 0.85, "5G")
        }
    }

    /// Fetching takes seconds: at the bandwidth of a fetch in document 001, as the simulator assumes it. Cores are left
    /// for it: run times alone fill so few of them that all data can be fetched more than once.
    pub(crate) fn dear(quick: bool) -> Self {
        // In a quarter of the time to fetch everything once would be more than the cores can do.
        let part = if quick { 2 } else { 1 };
        Self {
            // The longest fetch takes 8 s.
            deadline: Duration::from_secs(30),
            ..Self::of_trace(part, 0.4, "50M")
        }
    }

    /// Some hundred requests, and nobody who gives up.
    #[cfg(test)]
    pub(crate) fn short() -> Self {
        Self {
            deadline: Duration::from_secs(120),
            ..Self::of_trace(20, 0.85, "5G")
        }
    }

    /// So much of the trace, with so much work for the cores.
    fn of_trace(part: u32, utilisation: f64, fetch_bytes_per_second: &'static str) -> Self {
        let replay = Duration::from_secs(50) / part;
        let (hosts, cores, minutes) = (6, 4, 5);
        Self {
            work: Work::Emulated(Trace {
                // Its load is even, so that what differs between the ways is their doing.
                name: "azfunc2019_steady_5min",
                // The source begins at 08:00.
                from_clock: "09:40",
                params: azure::Params {
                    excerpt: Excerpt {
                        from_minute: 100,
                        minutes,
                        speed_up: minutes as f64 * 60.0 / replay.as_secs_f64(),
                    },
                    fleet: Fleet { hosts, cores },
                    // With all calls two real cores would be the bottleneck. The same number of requests a second,
                    // quick or not.
                    sample: 0.5 / f64::from(part),
                    utilisation,
                    max_run: None,
                    high: vec!["http".to_owned()],
                    users: false,
                    seed: 1,
                },
                fetch_bytes_per_second,
            }),
            replay,
            deadline: Duration::from_secs(15),
            hosts: hosts as usize,
            cores: cores as usize,
            cache_bytes: "4G",
            limits: Limits {
                // Four for each core: the default of 100 is for hosts with far more cores, and would
                // let a job wait for seconds here before the next host is taken.
                breaker_queued_jobs: 16,
                // Some eight mean run times: the default of 20 ms is for hosts on which hardly any
                // job waits.
                dagor_threshold: "500ms",
                dagor_step: 0.3,
            },
        }
    }

    /// Small enough for two real cores, which hosts, Envoys and the replayer share: these are to be
    /// less than half busy, so that it is the hosts' queues that requests wait in.
    pub(crate) fn real(quick: bool) -> Self {
        let replay = Duration::from_secs(if quick { 15 } else { 60 });
        Self {
            work: Work::Real(Feeds::small(replay)),
            replay,
            deadline: Duration::from_secs(10),
            hosts: 3,
            cores: 1,
            cache_bytes: "128M",
            limits: Limits {
                // Four for each core, as with emulated hosts.
                breaker_queued_jobs: 4,
                // Some eight mean runs of absent data.
                dagor_threshold: "250ms",
                dagor_step: 0.3,
            },
        }
    }
}
