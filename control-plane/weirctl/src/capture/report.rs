// SPDX-License-Identifier: Apache-2.0
//! What was logged, and how a workload was made of it.

use std::fmt;

use serde::Serialize;

use super::log::{Log, Seen};
use super::work::Work;
use super::{Asked, BYTES_PER_US};
use crate::screen::{FAIR, counted, styled};

/// What a person should know before the workload is trusted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// In the logs.
    pub requests: usize,
    /// From the first to the last.
    pub lasts_s: f64,
    /// That requests named.
    pub keys: usize,
    /// That answered.
    pub hosts: usize,
    /// As told.
    pub cores: u32,
    /// Requests of priority `high`, as logged.
    pub high: Logged,
    /// The others.
    pub low: Logged,
    /// Requests that no host answered well: their run times are their keys' medians.
    pub without_host: usize,
    /// Those that ended while all cores were taken by others of the log, likewise.
    pub unexplained: usize,
    /// On one core.
    pub run_mean_ms: f64,
    /// Median of the keys.
    pub fetch_ms: f64,
    /// Of which the host said what they cost.
    pub told: usize,
    /// All runs over what the hosts' cores offer.
    pub utilisation: f64,
}

/// Durations as the callers' Envoys logged them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[allow(missing_docs)]
pub struct Logged {
    pub requests: usize,
    pub mean_ms: Option<f64>,
    pub p99_ms: Option<f64>,
}

impl Logged {
    fn of<'a>(seen: impl Iterator<Item = &'a Seen>) -> Self {
        let mut all: Vec<_> = seen.map(|seen| seen.duration_ms).collect();
        let requests = all.len();
        let sum: f64 = all.iter().copied().map(f64::from).sum();
        // Nearest rank.
        let rank = (requests * 99).div_ceil(100).saturating_sub(1);
        let p99 = (requests > 0).then(|| f64::from(*all.select_nth_unstable(rank).1));
        Self {
            requests,
            mean_ms: (requests > 0).then(|| sum / requests as f64),
            p99_ms: p99,
        }
    }
}

impl Report {
    pub(super) fn of(log: &Log, begun: &[Option<u64>], work: &Work, asked: &Asked) -> Self {
        let came = |seen: Option<&Seen>| seen.map_or(0, |seen| seen.came);
        let lasts_s = (came(log.seen.last()) - came(log.seen.first())) as f64 / 1e6;
        let requests = log.seen.len();
        let (high, low): (Vec<_>, Vec<_>) = log.seen.iter().partition(|seen| seen.important);
        let without_host = log.seen.iter().filter(|seen| seen.visit.is_none()).count();
        let not_begun = begun.iter().filter(|begun| begun.is_none()).count();
        let ran_us: u64 = work.runs.iter().sum();
        let offered_s = lasts_s * f64::from(asked.cores) * log.hosts.len() as f64;
        Self {
            requests,
            lasts_s,
            keys: log.keys.len(),
            hosts: log.hosts.len(),
            cores: asked.cores,
            high: Logged::of(high.into_iter()),
            low: Logged::of(low.into_iter()),
            without_host,
            unexplained: not_begun - without_host,
            run_mean_ms: ran_us as f64 / 1e3 / requests.max(1) as f64,
            fetch_ms: work.fetch as f64 / 1e3,
            told: log.seen.iter().filter(|seen| seen.cost.is_some()).count(),
            utilisation: ran_us as f64 / 1e6 / offered_s.max(f64::MIN_POSITIVE),
        }
    }

    /// Where run times and fetches are from.
    fn source(&self) -> String {
        match self.told {
            0 => "estimated".to_owned(),
            told if told == self.requests => "told by hosts".to_owned(),
            told => format!(
                "told by hosts of {}, estimated of others",
                counted(told, "request")
            ),
        }
    }

    /// The flags of the simulator for the fleet that was logged.
    #[must_use]
    pub fn fleet(&self) -> String {
        let Self { hosts, cores, .. } = self;
        let bytes_per_second = BYTES_PER_US * 1_000_000;
        format!(
            "--hosts {hosts} --cores {cores} --fetch-base 1us --fetch-bytes-per-second {bytes_per_second}"
        )
    }
}

/// More than this share is worth a word.
const MANY: f64 = 0.02;

impl fmt::Display for Report {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (keys, hosts) = (counted(self.keys, "key"), counted(self.hosts, "host"));
        let (requests, lasts) = (counted(self.requests, "request"), self.lasts_s);
        writeln!(to, "{requests} in {lasts:.1} s, of {keys}, at {hosts}")?;
        for (name, logged) in [("high", &self.high), ("low", &self.low)] {
            if let Some((mean, p99)) = logged.mean_ms.zip(logged.p99_ms) {
                let requests = counted(logged.requests, "request");
                writeln!(
                    to,
                    "logged, priority {name}: {requests}, mean {mean:.1} ms, p99 {p99:.0} ms"
                )?;
            }
        }
        writeln!(
            to,
            "{}: a run {:.2} ms on average, {:.0} % of all cores; the fetch of a key {:.2} ms (median)",
            self.source(),
            self.run_mean_ms,
            self.utilisation * 100.0,
            self.fetch_ms
        )?;
        let many = |of: usize| of as f64 > MANY * self.requests as f64;
        if many(self.without_host) {
            let requests = counted(self.without_host, "request");
            let words = format!(
                "No host answered {requests} well; their run times are their keys' medians."
            );
            writeln!(to, "{}", styled(FAIR, &words))?;
        }
        if many(self.unexplained) {
            let requests = counted(self.unexplained, "request");
            let words = format!(
                "{requests} ended while others had all cores: hosts have more than --cores, or do not take the most \
                 important, then the oldest, first. Run times are less sure for it."
            );
            writeln!(to, "{}", styled(FAIR, &words))?;
        }
        writeln!(to, "fleet: {}", self.fleet())
    }
}
