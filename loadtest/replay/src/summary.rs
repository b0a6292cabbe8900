// SPDX-License-Identifier: Apache-2.0
//! The figures of a run.

mod tally;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::record::{Cache, Outcome, Record};

pub use tally::Distribution;
use tally::{Moments, Tally};

/// Requests of one priority, or all.
#[derive(Debug, Clone, Serialize)]
pub struct Group {
    /// Requests.
    pub requests: u64,
    /// By how they ended.
    pub outcomes: BTreeMap<&'static str, u64>,
    /// Attempts made for them.
    pub attempts: u64,
    /// Attempts answered 429.
    pub shed_attempts: u64,
    /// All-in seconds of those that ended ok.
    pub duration_s: Distribution,
    /// All-in seconds of all, until they were answered or given up.
    pub duration_all_s: Distribution,
    /// Seconds of waiting on the host, ok only.
    pub wait_s: Distribution,
    /// W / (W + E), ok only.
    pub slowdown: Distribution,
    /// Answers by where the data came from, ok only.
    pub cache: BTreeMap<&'static str, u64>,
    /// Hits over all with a key, ok only. A shared fetch is no hit.
    pub hit_ratio: f64,
}

/// One host's part, ok answers only.
#[derive(Debug, Clone, Serialize)]
pub struct HostFigures {
    /// Answers.
    pub requests: u64,
    /// Mean wait, seconds.
    pub mean_wait_s: f64,
    /// Variance of the waits, seconds squared.
    pub wait_variance_s2: f64,
    /// Answers without a fetch of their own or another's.
    pub hits: u64,
}

/// Whether the replayer itself kept up: first attempt minus offset, seconds.
#[derive(Debug, Clone, Serialize)]
pub struct Lag {
    /// Median.
    pub p50_s: f64,
    /// 99th percentile.
    pub p99_s: f64,
    /// Largest.
    pub max_s: f64,
}

/// Everything.
#[derive(Debug, Clone, Serialize)]
pub struct Summary {
    /// Did the replayer keep up?
    pub lag: Lag,
    /// All requests.
    pub all: Group,
    /// By priority name.
    pub priorities: BTreeMap<String, Group>,
    /// By host address.
    pub hosts: BTreeMap<String, HostFigures>,
    /// Population variance of the hosts' mean waits, seconds squared.
    pub host_mean_wait_variance_s2: f64,
    /// Variance of all waits, seconds squared (table 6 of document 001).
    pub wait_variance_s2: f64,
    /// Ok answers by the filter's reason, where it gives one.
    pub reasons: BTreeMap<String, u64>,
}

/// Gathers records.
#[derive(Debug)]
pub struct Figures {
    lag: Tally,
    all: GroupTally,
    priorities: BTreeMap<String, GroupTally>,
    hosts: BTreeMap<String, HostTally>,
    waits: Moments,
    reasons: BTreeMap<String, u64>,
}

impl Default for Figures {
    fn default() -> Self {
        Self {
            lag: Tally::new(1e6),
            all: GroupTally::new(),
            priorities: BTreeMap::new(),
            hosts: BTreeMap::new(),
            waits: Moments::default(),
            reasons: BTreeMap::new(),
        }
    }
}

impl Figures {
    /// Adds a request.
    pub fn add(&mut self, record: &Record) {
        self.lag.add(record.lag_us as f64 / 1e6);
        self.all.add(record);
        self.priorities
            .entry(record.request.priority.clone())
            .or_insert_with(GroupTally::new)
            .add(record);
        if record.outcome != Outcome::Ok {
            return;
        }
        if let Some(reason) = &record.reason {
            *self.reasons.entry(reason.clone()).or_default() += 1;
        }
        let wait = record.wait_us.map(|wait| wait as f64 / 1e6);
        if let Some(wait) = wait {
            self.waits.add(wait);
        }
        if let Some(host) = &record.host {
            let host = self.hosts.entry(host.clone()).or_default();
            host.requests += 1;
            host.hits += u64::from(record.cache == Some(Cache::Hit));
            if let Some(wait) = wait {
                host.waits.add(wait);
            }
        }
    }

    /// How many ended so.
    #[must_use]
    pub fn ended(&self, outcome: Outcome) -> u64 {
        self.all
            .outcomes
            .get(outcome.as_str())
            .copied()
            .unwrap_or(0)
    }

    /// The figures so far.
    #[must_use]
    pub fn summary(&self) -> Summary {
        let mut means = Moments::default();
        for host in self.hosts.values() {
            means.add(host.waits.mean());
        }
        let lag = self.lag.distribution();
        Summary {
            lag: Lag {
                p50_s: lag.p50,
                p99_s: lag.p99,
                max_s: lag.max,
            },
            all: self.all.group(),
            priorities: self
                .priorities
                .iter()
                .map(|(k, g)| (k.clone(), g.group()))
                .collect(),
            hosts: self
                .hosts
                .iter()
                .map(|(k, h)| (k.clone(), h.figures()))
                .collect(),
            host_mean_wait_variance_s2: means.variance(),
            wait_variance_s2: self.waits.variance(),
            reasons: self.reasons.clone(),
        }
    }
}

#[derive(Debug, Default)]
struct HostTally {
    requests: u64,
    hits: u64,
    waits: Moments,
}

impl HostTally {
    fn figures(&self) -> HostFigures {
        HostFigures {
            requests: self.requests,
            mean_wait_s: self.waits.mean(),
            wait_variance_s2: self.waits.variance(),
            hits: self.hits,
        }
    }
}

#[derive(Debug)]
struct GroupTally {
    outcomes: BTreeMap<&'static str, u64>,
    attempts: u64,
    shed_attempts: u64,
    duration: Tally,
    duration_all: Tally,
    wait: Tally,
    slowdown: Tally,
    cache: BTreeMap<&'static str, u64>,
}

impl GroupTally {
    fn new() -> Self {
        Self {
            outcomes: Outcome::ALL.map(|o| (o.as_str(), 0)).into(),
            attempts: 0,
            shed_attempts: 0,
            duration: Tally::new(1e6),
            duration_all: Tally::new(1e6),
            wait: Tally::new(1e6),
            slowdown: Tally::new(1e6),
            cache: [Cache::Hit, Cache::Miss, Cache::Shared]
                .map(|c| (c.as_str(), 0))
                .into(),
        }
    }

    fn add(&mut self, record: &Record) {
        let duration = record.duration_us as f64 / 1e6;
        *self.outcomes.entry(record.outcome.as_str()).or_default() += 1;
        self.attempts += u64::from(record.attempts);
        self.shed_attempts += u64::from(record.shed_attempts);
        self.duration_all.add(duration);
        if record.outcome != Outcome::Ok {
            return;
        }
        self.duration.add(duration);
        if let Some(wait) = record.wait_us {
            self.wait.add(wait as f64 / 1e6);
        }
        if let Some(slowdown) = record.slowdown() {
            self.slowdown.add(slowdown);
        }
        if let Some(cache) = record.cache {
            *self.cache.entry(cache.as_str()).or_default() += 1;
        }
    }

    fn group(&self) -> Group {
        let looked_up: u64 = self.cache.values().sum();
        let hits = self.cache.get(Cache::Hit.as_str()).copied().unwrap_or(0);
        Group {
            requests: self.outcomes.values().sum(),
            outcomes: self.outcomes.clone(),
            attempts: self.attempts,
            shed_attempts: self.shed_attempts,
            duration_s: self.duration.distribution(),
            duration_all_s: self.duration_all.distribution(),
            wait_s: self.wait.distribution(),
            slowdown: self.slowdown.distribution(),
            cache: self.cache.clone(),
            hit_ratio: if looked_up > 0 {
                hits as f64 / looked_up as f64
            } else {
                0.0
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::Request;

    /// 100 requests: waits of 1 to 100 ms, runs of 100 ms, two hosts, every tenth shed.
    fn records() -> Vec<Record> {
        let record = |n: u64| {
            let request = Request {
                t_us: n,
                key: "k".to_owned(),
                priority: if n.is_multiple_of(2) { "high" } else { "low" }.to_owned(),
                user: String::new(),
                run_us: 100_000,
                bytes: 0,
                body: None,
                sender: None,
            };
            let mut record = Record::new(n as usize, request, "127.0.0.1:1".parse().unwrap());
            record.lag_us = n;
            record.attempts = 1;
            record.outcome = Outcome::Ok;
            record.wait_us = Some((n + 1) * 1000);
            record.run_us = Some(100_000);
            record.fetch_us = Some(0);
            record.duration_us = (n + 1) * 1000 + 100_000;
            record.cache = Some(if n < 50 { Cache::Hit } else { Cache::Miss });
            record.host = Some(if n < 50 { "a" } else { "b" }.to_owned());
            if n % 10 == 9 {
                record.outcome = Outcome::Shed;
                record.attempts = 3;
                record.shed_attempts = 3;
            }
            record
        };
        (0..100).map(record).collect()
    }

    #[test]
    fn the_summary_of_known_records_is_known() {
        let mut figures = Figures::default();
        records().iter().for_each(|record| figures.add(record));
        let text = serde_json::to_string_pretty(&figures.summary()).unwrap() + "\n";
        let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/summary.json");
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(golden, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(golden).unwrap());
    }

    #[test]
    fn the_figures_are_right_to_three_digits() {
        let mut figures = Figures::default();
        records().iter().for_each(|record| figures.add(record));
        let summary = figures.summary();
        // 90 waits are ok: all of 1..=100 ms but the multiples of 10. Their mean is 50 ms.
        let wait = summary.all.wait_s;
        assert_eq!(wait.count, 90);
        assert!((wait.mean - 0.05).abs() < 1e-9, "{}", wait.mean);
        assert!((wait.p50 - 0.049).abs() < 1e-4, "{}", wait.p50);
        assert!((wait.p99 - 0.099).abs() < 1e-3, "{}", wait.p99);
        // Means of 25 and 75 ms: a variance of 25 ms squared.
        assert!((summary.host_mean_wait_variance_s2 - 0.025f64.powi(2)).abs() < 1e-9);
        assert_eq!(summary.all.outcomes["shed"], 10);
        assert_eq!(summary.all.shed_attempts, 30);
        assert_eq!(summary.all.hit_ratio, 0.5);
        assert_eq!(summary.priorities["high"].requests, 50);
    }

    #[test]
    fn no_record_at_all_gives_zeros_and_no_nan() {
        let text = serde_json::to_string(&Figures::default().summary()).unwrap();
        assert!(!text.contains("null"), "{text}");
    }
}
