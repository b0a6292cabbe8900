// SPDX-License-Identifier: Apache-2.0
//! Production and the six experiments of table 3, as scenarios, and Weir's own default beside them.

use std::time::Duration;

use weir_executor::{Eviction, Order, Settings, Timing};
use weir_fleet::settings::{Control, Dagor};
use weir_policy::overload::breakwater;
use weir_policy::{Overload, Policy, Selection};
use weir_replay::backoff::Backoff;

use super::history::History;
use super::params::{HOSTS, PREEMPTIBLE};
use super::published::{self, Rows};
use super::{Circumstance, Params, Requests};
use crate::scenario::{Accept, Impossible, Placement, Preemption, Signal, Timeouts, Zones};
use crate::tally::Tally;
use crate::{Ended, Scenario, simulate_watched};

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3600);
/// Of the experiments, what ended later was left out (section 10.1).
const CUT: Duration = Duration::from_secs((22 * 60 + 48) * 60);

impl std::str::FromStr for Experiment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut all = Self::ALL.into_iter();
        all.find(|one| one.slug() == text).ok_or_else(|| {
            let names = Self::ALL.map(Self::slug).join(", ");
            format!("{text:?}: no such experiment; there are {names}")
        })
    }
}

/// A run of document 001, by its name in table 3.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Experiment {
    Production,
    BaselineBaseline,
    BreakerBaseline,
    DagorBaseline,
    BaselineDynamic,
    BreakerDynamic,
    DagorDynamic,
    /// None of the document's: selection `estimate` with what Weir's hosts tell by default.
    Estimate,
}

impl Experiment {
    /// In the order of the tables, and what the document has not.
    pub const ALL: [Self; 8] = [
        Self::Production,
        Self::BaselineBaseline,
        Self::BreakerBaseline,
        Self::DagorBaseline,
        Self::BaselineDynamic,
        Self::BreakerDynamic,
        Self::DagorDynamic,
        Self::Estimate,
    ];

    /// As table 3 names it: overload, selection.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Production => "Production",
            Self::BaselineBaseline => "Baseline, baseline",
            Self::BreakerBaseline => "Breaker, baseline",
            Self::DagorBaseline => "DAGOR, baseline",
            Self::BaselineDynamic => "Baseline, dynamic",
            Self::BreakerDynamic => "Breaker, dynamic",
            Self::DagorDynamic => "DAGOR, dynamic",
            Self::Estimate => "Weir, estimate",
        }
    }

    /// Its published figures; of what was not published no numbers.
    #[must_use]
    pub fn published(self) -> &'static Rows {
        match self {
            Self::Production => &published::PRODUCTION,
            Self::BaselineBaseline => &published::BASELINE_BASELINE,
            Self::BreakerBaseline => &published::BREAKER_BASELINE,
            Self::DagorBaseline => &published::DAGOR_BASELINE,
            Self::BaselineDynamic => &published::BASELINE_DYNAMIC,
            Self::BreakerDynamic => &published::BREAKER_DYNAMIC,
            Self::DagorDynamic => &published::DAGOR_DYNAMIC,
            Self::Estimate => &published::NONE,
        }
    }

    /// Its name on command lines: `breaker-dynamic`.
    #[must_use]
    pub fn slug(self) -> String {
        self.name().to_lowercase().replace(", ", "-")
    }

    fn policy(self, params: &Params) -> (Selection, Overload) {
        let breaker = Overload::Breaker {
            queued_jobs: params.breaker_at as u32,
        };
        match self {
            Self::Production | Self::BaselineBaseline => (Selection::Baseline, Overload::None),
            Self::BreakerBaseline => (Selection::Baseline, breaker),
            Self::DagorBaseline => (Selection::Baseline, Overload::Dagor),
            Self::BaselineDynamic => (Selection::Dynamic, Overload::None),
            Self::BreakerDynamic => (Selection::Dynamic, breaker),
            Self::DagorDynamic => (Selection::Dynamic, Overload::Dagor),
            Self::Estimate => (Selection::Estimate, Overload::None),
        }
    }

    /// Production tries three servers and more attempts, with a connection time-out, and loses
    /// servers now and then; the experiments try once and are cut before all servers go (section
    /// 10.1).
    #[must_use]
    pub fn scenario(self, params: &Params, seed: u64) -> Scenario {
        let (selection, overload) = self.policy(params);
        let scenario = Scenario {
            hosts: HOSTS,
            host: host(params),
            language_model: None,
            timing: Timing {
                fetch_base: Duration::from_secs_f64(params.fetch_base_s),
                fetch_bytes_per_second: params.fetch_rate as u64,
            },
            accept: accept(params),
            preemption: self.preemption(),
            troubles: Vec::new(),
            // Production's callers share nothing, and the baseline needs nothing shared; the
            // experiments' scheduler is one process (section 7.3).
            callers: 1,
            heavy_caller: None,
            placement: Placement::Callers,
            policy: Policy {
                selection,
                overload,
                ..Policy::default()
            },
            plan: None,
            planner: None,
            // Section 9.1.3.
            dagor: Dagor {
                control: Control::StalledJobs,
                ..Dagor::default()
            },
            // The baseline reads no cache contents, so none are sent.
            cache_shards: match selection {
                Selection::Baseline => 0,
                // Many, as a change costs what its shard holds.
                _ => 1024,
            },
            // Section 7.3.
            poll: 5 * SECOND,
            publish: SECOND,
            report: SECOND,
            // The executor told delays of ended jobs alone (section 9.1.3).
            breakwater: breakwater::Params::default(),
            signal: Signal::Joblets,
            orca: false,
            gives_back: false,
            // No scheduler of document 001 does, and that would decide how production fares: RESULTS.md.
            ejects: false,
            network: Duration::from_micros(250),
            zones: Zones::default(),
            backoff: Backoff {
                base: SECOND,
                cap: MINUTE,
            },
            attempts: self.attempts(),
            timeouts: self.timeouts(params),
            seed,
        };
        match self {
            Self::Estimate => as_weir_by_default(scenario),
            _ => scenario,
        }
    }

    /// Sections 3.6, 7.4.4 and 9.2.
    fn preemption(self) -> Option<Preemption> {
        (self == Self::Production).then_some(Preemption {
            hosts: PREEMPTIBLE,
            life: 24 * HOUR,
            notice: 30 * SECOND,
            away: (5 * MINUTE, 10 * MINUTE),
        })
    }

    /// Production's number of retries is not given; the experiments do not retry (7.2).
    fn attempts(self) -> u32 {
        match self {
            Self::Production => 3,
            _ => 1,
        }
    }

    fn timeouts(self, params: &Params) -> Timeouts {
        Timeouts {
            // The longest durations of table 4 are above two hours (8,722 s).
            deadline: 2 * HOUR,
            connect: (self == Self::Production).then_some(connect_timeout(params)),
            read: None,
            queue: Some(Duration::from_secs_f64(params.queue_timeout_s)),
        }
    }

    /// Runs so many hours of requests under a circumstance, which production does not heed.
    ///
    /// # Errors
    /// The parameters make no scenario.
    pub fn run(
        self,
        circumstance: Circumstance,
        params: &Params,
        seed: u64,
        hours: f64,
        mut tell: impl FnMut(&Ended),
    ) -> Result<Tally, Impossible> {
        let circumstance = match self {
            Self::Production => Circumstance::AsPublished,
            _ => circumstance,
        };
        let mut scenario = self.scenario(params, seed);
        let requests = Requests::new(params, seed, hours);
        let keys = circumstance.keys(requests.keys());
        let first = HOUR.min(HOUR.mul_f64(hours / 4.0));
        // Production's caches are warm when the trace begins, the experiments' are empty (7.4.5),
        // and their data never change (7.4.1).
        let (requests, from) = match self {
            Self::Production => (requests, first),
            _ if circumstance == Circumstance::WarmCaches => (requests.as_trace(), first),
            _ => (requests.as_trace(), Duration::ZERO),
        };
        let until = match self {
            Self::Production => Duration::MAX,
            _ => CUT,
        };
        let lasts = HOUR.mul_f64(hours).min(until);
        circumstance.change(&mut scenario, lasts, connect_timeout(params));
        let mut tally = Tally::new(HOSTS, (lasts - from).as_secs_f64() / 3600.0);
        let mut history = History::new(HOSTS);
        let tell = |ended: Ended| {
            tell(&ended);
            if ended.at >= from && ended.at.saturating_add(ended.duration) < until {
                tally.add(&ended, scenario.timeouts.queue);
            }
        };
        let mut watch = |sample| history.add(sample);
        simulate_watched(&scenario, &keys, requests, tell, &mut watch)?;
        tally.history = history;
        Ok(tally)
    }
}

/// With what weir-control and the filter have as defaults, and hosts that tell their load on answers.
fn as_weir_by_default(scenario: Scenario) -> Scenario {
    Scenario {
        poll: SECOND,
        publish: SECOND / 50,
        report: SECOND / 10,
        signal: Signal::Jobs,
        orca: true,
        ..scenario
    }
}

fn host(params: &Params) -> Settings {
    Settings {
        cores: params.cores.round() as usize,
        cache_bytes: params.cache_bytes as u64,
        max_queued: 100_000,
        change_log: 65_536,
        order: Order::Priority,
        eviction: Eviction::default(),
    }
}

fn accept(params: &Params) -> Accept {
    Accept {
        free: 0,
        per_job: connect_timeout(params).div_f64(params.deaf_at),
        healthy: Duration::from_secs_f64(params.healthy_s),
    }
}

fn connect_timeout(params: &Params) -> Duration {
    Duration::from_secs_f64(params.connect_timeout_s)
}
