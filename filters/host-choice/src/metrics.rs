// SPDX-License-Identifier: Apache-2.0
//! What Envoy's `/stats/prometheus` says of the filter.

use weir_policy::{Cluster, Decision, Outcome, Reason};

use crate::host::{Change, Host, MetricType};
use crate::stream::ReportsEnd;

/// A counter; nothing is counted where the host could not define it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counter(Option<u32>);

impl Counter {
    fn define(host: &impl Host, name: &str) -> Self {
        Self(host.define_metric(MetricType::Counter, name, None))
    }

    fn by_reason(host: &impl Host, name: &str, reason: &str) -> Self {
        Self(host.define_metric(MetricType::Counter, name, Some(("reason", reason))))
    }

    pub(crate) fn increment(self, host: &impl Host) {
        if let Some(id) = self.0 {
            host.change_metric(id, Change::By(1));
        }
    }
}

/// A gauge; nothing is shown where the host could not define it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Gauge(Option<u32>);

impl Gauge {
    fn define(host: &impl Host, name: &str) -> Self {
        Self(host.define_metric(MetricType::Gauge, name, None))
    }

    /// For a gauge that is the sum over the proxy's VMs.
    pub(crate) fn add(self, host: &impl Host, offset: i64) {
        if let Some(id) = self.0 {
            host.change_metric(id, Change::By(offset));
        }
    }

    /// Over all VMs of the proxy; 0 where the host could not define it.
    pub(crate) fn get(self, host: &impl Host) -> u64 {
        self.0.and_then(|id| host.metric(id)).unwrap_or(0)
    }

    pub(crate) fn set(self, host: &impl Host, value: u64) {
        if let Some(id) = self.0 {
            host.change_metric(id, Change::To(value));
        }
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Metrics {
    /// Requests that were sent to another zone.
    crossings: Counter,
    /// In the order of reasons.
    decisions: [Counter; Reason::ALL.len()],
    /// Streams to weir-control that were opened.
    pub(crate) streams_opened: Counter,
    /// Resources that were refused with a NACK.
    pub(crate) resources_refused: Counter,
    reports_ended: [(ReportsEnd, Counter); ReportsEnd::ALL.len()],
    /// 1 while this proxy has a stream to weir-control.
    pub(crate) connected: Gauge,
    /// How often a host was left alone for a while because it fails.
    pub(crate) failing_hosts: Counter,
    /// Requests that Envoy sent to another host than the one named, although it had that one.
    pub(crate) choices_ignored: Counter,
    /// Requests of callers who are not trusted, that said something of themselves.
    pub(crate) disbelieved: Counter,
    /// Clusters whose table is older than its `stale_after`, or missing.
    pub(crate) stale_tables: Gauge,
    /// Clusters whose cache contents this VM has no room for.
    pub(crate) contents_left_out: Gauge,
    /// Requests that wait for a host now.
    held: Gauge,
    held_until: [(HeldUntil, Counter); HeldUntil::ALL.len()],
    /// In the order of their ends.
    bodies: [Counter; BodyEnd::ALL.len()],
    /// In the order of their ends.
    prefills: [Counter; PrefillEnd::ALL.len()],
    /// Requests of this proxy's callers that a host gave back.
    pub(crate) bounces: Counter,
    /// Requests that this proxy gave back for its host.
    pub(crate) given_back: Counter,
    /// Requests that this proxy refused for its host.
    pub(crate) refused: Counter,
    /// Requests at the host behind this proxy now.
    pub(crate) inbound: Gauge,
}

/// How the waiting for a host ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldUntil {
    Sent,
    Shed,
    Fallback,
    /// The caller has gone.
    Gone,
}

impl HeldUntil {
    const ALL: [Self; 4] = [Self::Sent, Self::Shed, Self::Fallback, Self::Gone];

    pub(crate) fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Send(_) => Self::Sent,
            Outcome::Shed { .. } => Self::Shed,
            Outcome::Fallback | Outcome::Hold { .. } => Self::Fallback,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Shed => "shed",
            Self::Fallback => "fallback",
            Self::Gone => "gone",
        }
    }
}

/// How the reading of a body for its key ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// The key is known, or all of the body is.
    Read,
    /// There is more of it than is read.
    Cut,
    /// It did not come in time.
    Late,
    Malformed,
    /// It is no JSON by its headers, is compressed, or the proxy shows none.
    Unread,
}

impl BodyEnd {
    const ALL: [Self; 5] = [
        Self::Read,
        Self::Cut,
        Self::Late,
        Self::Malformed,
        Self::Unread,
    ];

    fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Cut => "cut",
            Self::Late => "late",
            Self::Malformed => "malformed",
            Self::Unread => "unread",
        }
    }
}

/// Whether a host was named that reads a prompt for the one that writes the answer, or why not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PrefillEnd {
    Named,
    /// The prompt has no key, or is not long enough.
    Short,
    /// The host that writes has enough of it.
    Cached,
    /// None is known that would get it.
    NoHost,
}

impl PrefillEnd {
    const ALL: [Self; 4] = [Self::Named, Self::Short, Self::Cached, Self::NoHost];

    fn as_str(self) -> &'static str {
        match self {
            Self::Named => "named",
            Self::Short => "short",
            Self::Cached => "cached",
            Self::NoHost => "no_host",
        }
    }
}

impl Metrics {
    pub(crate) fn define(host: &impl Host) -> Self {
        Self {
            crossings: Counter::define(host, "weir_crossings_total"),
            decisions: Reason::ALL
                .map(|reason| Counter::by_reason(host, "weir_decisions_total", reason.as_str())),
            streams_opened: Counter::define(host, "weir_filter_streams_opened_total"),
            resources_refused: Counter::define(host, "weir_resources_refused_total"),
            reports_ended: ReportsEnd::ALL.map(|end| {
                let name = "weir_report_streams_ended_total";
                (end, Counter::by_reason(host, name, end.as_str()))
            }),
            connected: Gauge::define(host, "weir_filter_connected"),
            failing_hosts: Counter::define(host, "weir_failing_hosts_total"),
            choices_ignored: Counter::define(host, "weir_choices_ignored_total"),
            disbelieved: Counter::define(host, "weir_disbelieved_requests_total"),
            stale_tables: Gauge::define(host, "weir_stale_tables"),
            contents_left_out: Gauge::define(host, "weir_cache_contents_left_out"),
            held: Gauge::define(host, "weir_held_requests"),
            held_until: HeldUntil::ALL.map(|ending| {
                let counter = Counter::by_reason(host, "weir_held_total", ending.as_str());
                (ending, counter)
            }),
            bodies: BodyEnd::ALL
                .map(|end| Counter::by_reason(host, "weir_bodies_total", end.as_str())),
            prefills: PrefillEnd::ALL
                .map(|end| Counter::by_reason(host, "weir_prefills_total", end.as_str())),
            bounces: Counter::define(host, "weir_bounces_total"),
            given_back: Counter::define(host, "weir_inbound_bounced_total"),
            refused: Counter::define(host, "weir_inbound_refused_total"),
            inbound: Gauge::define(host, "weir_inbound_requests"),
        }
    }

    pub(crate) fn holds(&self, host: &impl Host) {
        self.held.add(host, 1);
    }

    pub(crate) fn held_until(&self, host: &impl Host, ending: HeldUntil) {
        self.held.add(host, -1);
        if let Some((_, counter)) = self.held_until.iter().find(|(known, _)| *known == ending) {
            counter.increment(host);
        }
    }

    pub(crate) fn reports_ended(&self, host: &impl Host, end: ReportsEnd) {
        if let Some((_, counter)) = self.reports_ended.iter().find(|(known, _)| *known == end) {
            counter.increment(host);
        }
    }

    pub(crate) fn body(&self, host: &impl Host, end: BodyEnd) {
        if let Some(counter) = self.bodies.get(end as usize) {
            counter.increment(host);
        }
    }

    pub(crate) fn prefill(&self, host: &impl Host, end: PrefillEnd) {
        if let Some(counter) = self.prefills.get(end as usize) {
            counter.increment(host);
        }
    }

    pub(crate) fn decided(&self, host: &impl Host, cluster: &Cluster, decision: &Decision) {
        if let Some(counter) = self.decisions.get(decision.reason as usize) {
            counter.increment(host);
        }
        if cluster.crosses(decision) {
            self.crossings.increment(host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeHost;

    #[test]
    fn each_decision_is_counted_by_its_own_reason() {
        let host = FakeHost::default();
        let metrics = Metrics::define(&host);
        for (at, reason) in (1..).zip(Reason::ALL) {
            for _ in 0..at {
                let decision = Decision {
                    outcome: Outcome::Fallback,
                    reason,
                };
                metrics.decided(&host, &Cluster::default(), &decision);
            }
        }
        for (at, reason) in (1..).zip(Reason::ALL) {
            let name = format!("weir_decisions_total{{reason={}}}", reason.as_str());
            assert_eq!(host.metric(&name), at, "{name}");
        }
    }
}
