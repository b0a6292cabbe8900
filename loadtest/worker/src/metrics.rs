// SPDX-License-Identifier: Apache-2.0
//! What the host tells Prometheus.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry;

use weir_executor::{Kind, Source};

use crate::picture::Picture;

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

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// How a request ended.
#[derive(Debug, Clone, Copy)]
pub enum Outcome {
    /// Finished and answered.
    Done,
    /// A joblet that it needed failed.
    Failed,
    /// Too many jobs were queued.
    Refused,
    /// The caller left.
    Cancelled,
    /// One of its own time limits passed.
    TimedOut,
    /// The host stopped first.
    Stopped,
}

/// The metrics of one host; clones share their values.
#[derive(Debug, Clone)]
pub struct Families {
    draining: Gauge,
    in_progress: Gauge,
    busy_cores: Gauge,
    queued: Family<PriorityLabel, Gauge>,
    work: Family<PriorityLabel, Gauge<f64, AtomicU64>>,
    stalled: Family<KindLabel, Gauge>,
    queuing_delay: Family<PriorityLabel, Histogram>,
    joblet_seconds: Family<KindLabel, Histogram>,
    joblets_failed: Family<KindLabel, Counter>,
    suspensions: Family<KindLabel, Counter>,
    cache_bytes: Gauge,
    cache_items: Gauge,
    cache_evictions: Counter,
    lookups: Family<SourceLabel, Counter>,
    jobs: Family<OutcomeLabel, Counter>,
}

impl Default for Families {
    fn default() -> Self {
        Self {
            draining: Gauge::default(),
            in_progress: Gauge::default(),
            busy_cores: Gauge::default(),
            queued: Family::default(),
            work: Family::default(),
            stalled: Family::default(),
            queuing_delay: Family::new_with_constructor(histogram),
            joblet_seconds: Family::new_with_constructor(histogram),
            joblets_failed: Family::default(),
            suspensions: Family::default(),
            cache_bytes: Gauge::default(),
            cache_items: Gauge::default(),
            cache_evictions: Counter::default(),
            lookups: Family::default(),
            jobs: Family::default(),
        }
    }
}

/// 0.1 ms to 210 s: document 001 reports waits from 40 µs to 273 s.
fn histogram() -> Histogram {
    Histogram::new(exponential_buckets(0.0001, 2.0, 22))
}

impl Families {
    /// Registers everything under `prefix`, e.g. `weir_host`.
    pub fn register(&self, registry: &mut Registry, prefix: &str) {
        let r = registry.sub_registry_with_prefix(prefix);
        r.register(
            "draining",
            "1 while the host is leaving and wants no new requests",
            self.draining.clone(),
        );
        r.register(
            "in_progress",
            "Jobs running and queued",
            self.in_progress.clone(),
        );
        r.register(
            "busy_cores",
            "Cores in use, virtual ones where the work is emulated",
            self.busy_cores.clone(),
        );
        r.register(
            "queued",
            "Jobs that wait for a core, by priority class",
            self.queued.clone(),
        );
        r.register(
            "work_seconds",
            "Core time that waiting jobs are expected to need, by priority class: what jobs of their keys \
             have needed lately",
            self.work.clone(),
        );
        r.register(
            "stalled_joblets",
            "Joblets that could run and wait for a core, by kind",
            self.stalled.clone(),
        );
        r.register(
            "joblet_seconds",
            "Time that a joblet held its cores, by kind (real work only)",
            self.joblet_seconds.clone(),
        );
        r.register(
            "joblets_failed",
            "Joblets without a result, by kind (real work only)",
            self.joblets_failed.clone(),
        );
        r.register(
            "joblet_suspensions",
            "Joblets that made room for a more important one, by kind (--order suspending only)",
            self.suspensions.clone(),
        );
        r.register(
            "queuing_delay_seconds",
            "Time a job waited in all by priority class, observed when its last joblet begins",
            self.queuing_delay.clone(),
        );
        r.register(
            "cache_bytes",
            "Bytes in the cache, modelled ones where the work is emulated",
            self.cache_bytes.clone(),
        );
        r.register(
            "cache_items",
            "Results in the cache",
            self.cache_items.clone(),
        );
        r.register(
            "cache_evictions",
            "Results evicted from the cache",
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
            let work = picture.load.work.get(usize::from(*class));
            self.work
                .get_or_create(&PriorityLabel { priority: *class })
                .set(work.copied().unwrap_or_default().as_secs_f64());
            // A host that was never asked has waited 0 s: without the row it would look like one that does not tell.
            let _ = self
                .queuing_delay
                .get_or_create(&PriorityLabel { priority: *class });
        }
        for (kind, stalled) in Kind::ALL.into_iter().zip(picture.load.stalled) {
            let label = KindLabel { kind: kind.name() };
            self.stalled.get_or_create(&label).set(i64::from(stalled));
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

    pub(crate) fn drains(&self) {
        self.draining.set(1);
    }

    pub(crate) fn began(&self, class: u8, wait: Duration) {
        let label = PriorityLabel { priority: class };
        let delay = self.queuing_delay.get_or_create(&label);
        delay.observe(wait.as_secs_f64());
    }

    #[cfg(feature = "rules")]
    pub(crate) fn ran(&self, kind: Kind, lasted: Duration, good: bool) {
        let label = KindLabel { kind: kind.name() };
        let seconds = self.joblet_seconds.get_or_create(&label);
        seconds.observe(lasted.as_secs_f64());
        if !good {
            self.joblets_failed.get_or_create(&label).inc();
        }
    }

    #[cfg(feature = "rules")]
    pub(crate) fn suspended(&self, kind: Kind) {
        let label = KindLabel { kind: kind.name() };
        self.suspensions.get_or_create(&label).inc();
    }

    pub(crate) fn ended(&self, outcome: Outcome) {
        let outcome = match outcome {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::Refused => "refused",
            Outcome::Cancelled => "cancelled",
            Outcome::TimedOut => "timed_out",
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
