// SPDX-License-Identifier: Apache-2.0
//! What Envoy's `/stats/prometheus` says of the filter. Envoy turns the `;.;name=.=value` parts into labels
//! by the `stats_tags` of its bootstrap (envoy-config/README.md).

use weir_policy::Reason;

use crate::hostcalls::{self, MetricType};

/// A counter; nothing is counted where the host could not define it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter(Option<u32>);

impl Counter {
    fn define(name: &str) -> Self {
        Self(hostcalls::define_metric(MetricType::Counter, name))
    }

    pub(crate) fn increment(self) {
        if let Some(id) = self.0 {
            hostcalls::increment_metric(id, 1);
        }
    }
}

/// A gauge; nothing is shown where the host could not define it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauge(Option<u32>);

impl Gauge {
    fn define(name: &str) -> Self {
        Self(hostcalls::define_metric(MetricType::Gauge, name))
    }

    pub(crate) fn set(self, value: u64) {
        if let Some(id) = self.0 {
            hostcalls::record_metric(id, value);
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    decisions: [(Reason, Counter); Reason::ALL.len()],
    /// Streams to weir-control that were opened.
    pub(crate) streams_opened: Counter,
    /// Resources that were refused with a NACK.
    pub(crate) resources_refused: Counter,
    /// 1 while this proxy has a stream to weir-control.
    pub(crate) connected: Gauge,
    /// Clusters whose table is older than its `stale_after`, or missing.
    pub(crate) stale_tables: Gauge,
}

impl Metrics {
    pub(crate) fn define() -> Self {
        let decision = |reason: Reason| {
            let name = format!("weir_decisions_total;.;reason=.={};.;", reason.as_str());
            (reason, Counter::define(&name))
        };
        Self {
            decisions: Reason::ALL.map(decision),
            streams_opened: Counter::define("weir_control_streams_opened_total"),
            resources_refused: Counter::define("weir_resources_refused_total"),
            connected: Gauge::define("weir_control_connected"),
            stale_tables: Gauge::define("weir_stale_tables"),
        }
    }

    pub(crate) fn decided(&self, reason: Reason) {
        if let Some((_, counter)) = self.decisions.iter().find(|(known, _)| *known == reason) {
            counter.increment();
        }
    }
}
