// SPDX-License-Identifier: Apache-2.0
//! What engines publish of their prefix caches, counted.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};
use weir_kv_events::host::Gaps;
use weir_kv_events::tree::Counts;

use super::{OfCluster, OfHost};

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfKind {
    cluster: String,
    kind: &'static str,
}

#[derive(Clone, Debug, Default, Hash, PartialEq, Eq, EncodeLabelSet)]
pub(super) struct OfOutcome {
    cluster: String,
    outcome: &'static str,
}

/// Of all hosts. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct KvEvents {
    pub(super) blocks: Family<OfHost, Gauge>,
    pub(super) lag: Family<OfHost, Gauge<f64, AtomicU64>>,
    pub(super) events: Family<OfKind, Counter>,
    pub(super) gaps: Family<OfOutcome, Counter>,
    pub(super) received: Family<OfCluster, Counter>,
}

impl KvEvents {
    pub(super) fn register(&self, registry: &mut Registry) {
        registry.register(
            "kv_blocks_held",
            "Blocks of its prefix cache that a host says it holds",
            self.blocks.clone(),
        );
        registry.register_with_unit(
            "kv_lag",
            "Age of a host's newest batch of events when it was taken, by the clocks of both",
            Unit::Seconds,
            self.lag.clone(),
        );
        registry.register(
            "kv_blocks",
            "Blocks that engines said were stored or removed; of those stored, unnamed (behind one that is not known, or of \
             requests with more than text) and dropped (beyond kv_events.max_blocks); and events cleared, unknown",
            self.events.clone(),
        );
        registry.register(
            "kv_gaps",
            "Times that batches of an engine did not follow each other: replayed, or all that was known of the host was \
             forgotten (lost, restarted, unreadable)",
            self.gaps.clone(),
        );
        registry.register_with_unit(
            "kv_received",
            "Bytes of batches that engines sent",
            Unit::Bytes,
            self.received.clone(),
        );
    }

    /// The cluster is gone.
    pub(super) fn forget(&self, of_cluster: &OfCluster) {
        let cluster = || of_cluster.cluster.clone();
        for (kind, _) in Counts::default().by_kind() {
            let cluster = cluster();
            self.events.remove(&OfKind { cluster, kind });
        }
        for (outcome, _) in Gaps::default().by_outcome() {
            let cluster = cluster();
            self.gaps.remove(&OfOutcome { cluster, outcome });
        }
        self.received.remove(of_cluster);
    }

    /// Of one host, as long as that lives.
    pub(crate) fn of(&self, cluster: &str, host: &str) -> OfOne {
        OfOne {
            all: self.clone(),
            host: OfHost::new(cluster, host),
            counts: Counts::default(),
            gaps: Gaps::default(),
        }
    }
}

/// Of one host. Its gauges go with it.
#[derive(Debug)]
pub struct OfOne {
    all: KvEvents,
    host: OfHost,
    /// What was counted already.
    counts: Counts,
    gaps: Gaps,
}

impl OfOne {
    pub(crate) fn received(&self, bytes: usize) {
        let cluster = self.host.cluster.clone();
        let received = self.all.received.get_or_create(&OfCluster { cluster });
        received.inc_by(bytes as u64);
    }

    pub(crate) fn counted(&mut self, counts: Counts, gaps: Gaps, blocks: usize) {
        let (kinds, before) = (counts.by_kind(), self.counts.by_kind());
        for ((kind, count), (_, before)) in kinds.into_iter().zip(before) {
            let cluster = self.host.cluster.clone();
            let events = self.all.events.get_or_create(&OfKind { cluster, kind });
            events.inc_by(count.saturating_sub(before));
        }
        let (outcomes, before) = (gaps.by_outcome(), self.gaps.by_outcome());
        for ((outcome, count), (_, before)) in outcomes.into_iter().zip(before) {
            let cluster = self.host.cluster.clone();
            let counter = self.all.gaps.get_or_create(&OfOutcome { cluster, outcome });
            counter.inc_by(count.saturating_sub(before));
        }
        (self.counts, self.gaps) = (counts, gaps);
        let gauge = self.all.blocks.get_or_create(&self.host);
        gauge.set(i64::try_from(blocks).unwrap_or(i64::MAX));
    }

    /// The newest batch was made then: Unix time in seconds.
    pub(crate) fn newest(&self, at: f64) {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        let lag = now.map_or(0.0, |now: Duration| now.as_secs_f64() - at);
        self.all.lag.get_or_create(&self.host).set(lag);
    }
}

impl Drop for OfOne {
    fn drop(&mut self) {
        self.all.blocks.remove(&self.host);
        self.all.lag.remove(&self.host);
    }
}
