// SPDX-License-Identifier: Apache-2.0
//! The figures of one cell of a grid of experiments.

use std::time::Duration;

use weir_replay::record::Outcome;

use crate::document001::published::Row;
use crate::tally::{Tally, Times};
use crate::workload::HIGH;
use crate::{Ended, Scenario};

/// Gathers requests that come from a time on; earlier ones only warm the caches.
#[derive(Debug)]
pub struct Cell {
    from: Duration,
    queue_timeout: Option<Duration>,
    /// Cores of the fleet; hosts of a language model have none.
    cores: Option<f64>,
    tally: Tally,
    /// All-in waits by priority, high first.
    waits: [Times; 2],
    requests: [u64; 2],
    failed: [u64; 2],
    last: Duration,
}

/// What came of the requests of one priority. Seconds: mean, p50, p90, p95, p99, max.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Group {
    /// How many came.
    pub requests: u64,
    /// Those that did not end well.
    pub failed: u64,
    /// From their coming to their end, back-off and retries included, of all.
    pub duration: Row,
    /// The same without the fetching and running of the attempt that was answered.
    pub wait: Row,
    /// As the host sees the attempts that it took (document 001, section 5.1).
    pub host_duration: Row,
    /// Until the first joblet had a core, of the same.
    pub host_wait: Row,
}

impl Cell {
    /// Of nothing yet.
    #[must_use]
    pub fn new(scenario: &Scenario, from: Duration) -> Self {
        Self {
            from,
            queue_timeout: scenario.timeouts.queue,
            cores: match scenario.language_model {
                None => Some((scenario.hosts * scenario.host.cores) as f64),
                Some(_) => None,
            },
            tally: Tally::new(scenario.hosts, 0.0),
            waits: [Times::new(), Times::new()],
            requests: [0; 2],
            failed: [0; 2],
            last: from,
        }
    }

    /// Adds a request.
    pub fn add(&mut self, ended: &Ended) {
        if ended.at < self.from {
            return;
        }
        let class = usize::from(ended.class != HIGH);
        let spent = ended.spent.as_ref();
        let served = spent.map_or(Duration::ZERO, |spent| spent.fetch + spent.run);
        self.waits[class].add(ended.duration.saturating_sub(served));
        self.requests[class] += 1;
        self.failed[class] += u64::from(ended.outcome != Outcome::Ok);
        self.last = self.last.max(ended.at + ended.duration);
        self.tally.add(ended, self.queue_timeout);
    }

    /// By priority, high first.
    #[must_use]
    pub fn groups(&self) -> [Group; 2] {
        let rows = self.tally.rows();
        let host = [
            (rows.high_duration, rows.high_wait),
            (rows.low_duration, rows.low_wait),
        ];
        let all_in = self.tally.all_in();
        std::array::from_fn(|class| Group {
            requests: self.requests[class],
            failed: self.failed[class],
            duration: all_in[class],
            wait: self.waits[class].row(),
            host_duration: host[class].0,
            host_wait: host[class].1,
        })
    }

    /// Answers without a fetch, over all answers.
    #[must_use]
    pub fn hit_ratio(&self) -> f64 {
        self.tally.hits as f64 / self.tally.answers.max(1) as f64
    }

    /// Hosts that gave an attempt back.
    #[must_use]
    pub fn bounces(&self) -> u64 {
        self.tally.bounces
    }

    /// Attempts that were refused.
    #[must_use]
    pub fn shed(&self) -> u64 {
        self.tally.shed
    }

    /// Time in which rules ran for requests that were answered, over what the fleet's cores offer
    /// until the last request ended; several cores of one request count once. A language model's host
    /// reads and writes many prompts at a time: of it there is none.
    #[must_use]
    pub fn goodput(&self) -> Option<f64> {
        let offered = self.cores? * self.last.saturating_sub(self.from).as_secs_f64();
        Some(self.tally.ran_s / offered.max(f64::MIN_POSITIVE))
    }
}
