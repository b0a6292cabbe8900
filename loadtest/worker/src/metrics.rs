// SPDX-License-Identifier: Apache-2.0
//! What the host tells Prometheus.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use crate::executor::Source;
use crate::host::Picture;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct PriorityLabel {
    priority: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct SourceLabel {
    source: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OutcomeLabel {
    outcome: &'static str,
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub enum Outcome {
    /// Finished and answered.
    Done,
    /// Too many jobs were queued.
    Refused,
    /// The caller left.
    Cancelled,
    /// The host stopped first.
    Stopped,
}

/// The metrics of one host; clones share their values.
#[derive(Debug, Clone)]
pub struct Families {
    in_progress: Gauge,
    busy_cores: Gauge,
    queued: Family<PriorityLabel, Gauge>,
    queuing_delay: Histogram,
    cache_bytes: Gauge,
    cache_items: Gauge,
    cache_evictions: Counter,
    lookups: Family<SourceLabel, Counter>,
    jobs: Family<OutcomeLabel, Counter>,
}

impl Default for Families {
    fn default() -> Self {
        Self {
            in_progress: Gauge::default(),
            busy_cores: Gauge::default(),
            queued: Family::default(),
            // 0.1 ms to 210 s: document 001 reports waits from 40 µs to 240 s.
            queuing_delay: Histogram::new(exponential_buckets(0.0001, 2.0, 22)),
            cache_bytes: Gauge::default(),
            cache_items: Gauge::default(),
            cache_evictions: Counter::default(),
            lookups: Family::default(),
            jobs: Family::default(),
        }
    }
}

impl Families {
    /// Registers everything under `prefix`, e.g. `weir_host`.
    pub fn register(&self, registry: &mut Registry, prefix: &str) {
        let r = registry.sub_registry_with_prefix(prefix);
        r.register(
            "in_progress",
            "Jobs running and queued (emulated work)",
            self.in_progress.clone(),
        );
        r.register(
            "busy_cores",
            "Virtual cores in use (emulated work)",
            self.busy_cores.clone(),
        );
        r.register(
            "queued",
            "Jobs that wait for a core, by priority class (emulated work)",
            self.queued.clone(),
        );
        r.register(
            "queuing_delay_seconds",
            "Time a job waited in all, observed when its last joblet begins (emulated work)",
            self.queuing_delay.clone(),
        );
        r.register(
            "cache_bytes",
            "Modelled bytes in the cache",
            self.cache_bytes.clone(),
        );
        r.register("cache_items", "Keys in the cache", self.cache_items.clone());
        r.register(
            "cache_evictions",
            "Keys evicted from the cache",
            self.cache_evictions.clone(),
        );
        r.register(
            "cache_lookups",
            "Finished jobs by where their data came from",
            self.lookups.clone(),
        );
        r.register("jobs", "Jobs by how they ended", self.jobs.clone());
    }

    /// Sets the gauges to what the host looks like now.
    pub fn show(&self, picture: &Picture, classes: &[u8]) {
        self.in_progress.set(i64::from(picture.load.in_progress));
        self.busy_cores.set(i64::from(picture.load.busy_cores));
        for class in classes {
            let queued = picture.load.queued.get(usize::from(*class));
            self.queued
                .get_or_create(&PriorityLabel { priority: *class })
                .set(i64::from(queued.copied().unwrap_or(0)));
        }
        self.cache_bytes
            .set(i64::try_from(picture.cache_bytes).unwrap_or(i64::MAX));
        self.cache_items
            .set(i64::try_from(picture.cache_items).unwrap_or(i64::MAX));
        let new = picture
            .cache_evictions
            .saturating_sub(self.cache_evictions.get());
        self.cache_evictions.inc_by(new);
    }

    pub(crate) fn began(&self, wait: std::time::Duration) {
        self.queuing_delay.observe(wait.as_secs_f64());
    }

    pub(crate) fn ended(&self, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Done => "done",
            Outcome::Refused => "refused",
            Outcome::Cancelled => "cancelled",
            Outcome::Stopped => "stopped",
        };
        self.jobs.get_or_create(&OutcomeLabel { outcome }).inc();
    }

    pub(crate) fn looked_up(&self, source: Source) {
        let source = match source {
            Source::None => "none",
            Source::Hit => "hit",
            Source::Miss => "miss",
            Source::Shared => "shared",
        };
        self.lookups.get_or_create(&SourceLabel { source }).inc();
    }
}
