// SPDX-License-Identifier: Apache-2.0
//! Numbers of the discovery server.

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

use super::room::Full;

/// Counters and gauges of the discovery server. Clones share the numbers.
#[derive(Clone, Debug, Default)]
pub struct XdsMetrics {
    streams: Family<KindLabel, Gauge>,
    superseded: Counter,
    responses: Family<TypeLabel, Counter>,
    resources: Family<TypeLabel, Counter>,
    bytes: Family<TypeLabel, Counter>,
    acks: Family<TypeLabel, Counter>,
    nacks: Family<TypeLabel, Counter>,
    lost_events: Counter,
    refused: Family<ReasonLabel, Counter>,
    names: Gauge,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ReasonLabel {
    reason: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Only types that were sent become labels, so clients cannot invent them.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TypeLabel {
    r#type: String,
}

impl TypeLabel {
    fn of(type_url: &str) -> Self {
        let r#type = type_url
            .rsplit(['.', '/'])
            .next()
            .unwrap_or_default()
            .to_owned();
        Self { r#type }
    }
}

impl XdsMetrics {
    /// Registers everything. The caller chooses the prefix, such as `weir_xds`.
    pub fn register(&self, registry: &mut Registry) {
        registry.register("streams", "Open discovery streams", self.streams.clone());
        registry.register(
            "streams_superseded",
            "Streams ended because a newer one of the same proxy came",
            self.superseded.clone(),
        );
        registry.register("responses", "Responses sent", self.responses.clone());
        registry.register(
            "resources",
            "New and changed resources in responses sent",
            self.resources.clone(),
        );
        registry.register_with_unit(
            "response_size",
            "Encoded size of responses sent",
            Unit::Bytes,
            self.bytes.clone(),
        );
        registry.register("acks", "Responses that clients accepted", self.acks.clone());
        registry.register(
            "nacks",
            "Responses that clients refused",
            self.nacks.clone(),
        );
        registry.register(
            "lost_events",
            "Answers of clients that were not noted because their reader was busy",
            self.lost_events.clone(),
        );
        // From the start, or the first one would be no increase.
        for full in Full::ALL {
            self.refused(full).inc_by(0);
        }
        registry.register(
            "refused",
            "Streams ended because a limit was reached",
            self.refused.clone(),
        );
        registry.register_with_unit(
            "names",
            "Counted bytes of the names that streams ask for, of at most discovery.max_bytes",
            Unit::Bytes,
            self.names.clone(),
        );
    }

    /// Resources sent so far, of one type.
    pub fn resources_sent(&self, type_url: &str) -> u64 {
        self.resources.get_or_create(&TypeLabel::of(type_url)).get()
    }

    pub(super) fn opened(&self, weir: bool) -> OpenStream {
        let kind = if weir { "weir" } else { "envoy" };
        let gauge = self.streams.get_or_create_owned(&KindLabel { kind });
        gauge.inc();
        OpenStream(gauge)
    }

    pub(super) fn count_superseded(&self) {
        self.superseded.inc();
    }

    /// Bytes that names take, for whoever counts them.
    pub fn names(&self) -> Gauge {
        self.names.clone()
    }

    pub(super) fn count_refused(&self, full: Full) {
        self.refused(full).inc();
    }

    fn refused(&self, full: Full) -> Counter {
        let reason = full.as_str();
        self.refused.get_or_create_owned(&ReasonLabel { reason })
    }

    pub(super) fn count_lost_event(&self) {
        self.lost_events.inc();
    }

    /// The counters of one type. A stream asks once: to look for them costs more than to count.
    pub(super) fn of_type(&self, type_url: &'static str) -> OfType {
        let label = TypeLabel::of(type_url);
        OfType {
            type_url,
            responses: self.responses.get_or_create_owned(&label),
            resources: self.resources.get_or_create_owned(&label),
            bytes: self.bytes.get_or_create_owned(&label),
            acks: self.acks.get_or_create_owned(&label),
            nacks: self.nacks.get_or_create_owned(&label),
        }
    }
}

#[cfg(test)]
impl XdsMetrics {
    /// A series of each family, for the reference.
    pub(crate) fn fill(&self) {
        drop(self.opened(true));
        drop(self.opened(false));
        self.of_type("");
    }
}

/// What is counted of one type.
#[derive(Debug)]
pub(super) struct OfType {
    pub(super) type_url: &'static str,
    responses: Counter,
    resources: Counter,
    bytes: Counter,
    acks: Counter,
    nacks: Counter,
}

impl OfType {
    pub(super) fn count_response(&self, resources: usize, bytes: usize) {
        self.responses.inc();
        self.resources.inc_by(resources as u64);
        self.bytes.inc_by(bytes as u64);
    }

    pub(super) fn count_verdict(&self, refused: bool) {
        match refused {
            true => self.nacks.inc(),
            false => self.acks.inc(),
        };
    }
}

/// One open stream, until dropped.
#[derive(Debug)]
pub(super) struct OpenStream(Gauge);

impl Drop for OpenStream {
    fn drop(&mut self) {
        self.0.dec();
    }
}
