// SPDX-License-Identifier: Apache-2.0
//! METRICS.md: every family that is registered.

use std::fmt::Debug;
use std::hash::Hash;
use std::path::Path;

use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::registry::Registry;

use super::{Metrics, kv_events};
use crate::gate;
use crate::xds::XdsMetrics;

/// A family without series is not encoded.
fn fill<S, M, C>(family: &Family<S, M, C>)
where
    S: Clone + Debug + Default + Eq + Hash,
    C: MetricConstructor<M>,
{
    let _ = family.get_or_create(&S::default());
}

impl Metrics {
    /// A series of each family. No field is left out here: a new one is dealt with, too.
    fn fill(&self) {
        let Self {
            polls,
            config_loads: _,
            published,
            built,
            missing,
            hosts,
            stale,
            health_ignored,
            panic,
            steered,
            withdrawn,
            kept,
            ignored,
            assumed,
            refetched,
            known_keys,
            unknown_series,
            level,
            requests,
            shed,
            held,
            answers,
            durations,
            reports: _,
            dropped,
            refused: _,
            report_streams: _,
            report_rows: _,
            waiting_report_bytes: _,
            proxies: _,
            in_flight: _,
            nodes: _,
            capacity,
            node_silent,
            denials,
            certificate_starts,
            certificate_ends,
            leader: _,
            leader_changes: _,
            lock_index: _,
            memory_limit: _,
            memory_counted: _,
            contents,
            contents_dropped,
            contents_drops,
            plan_moves,
            plan_evictions,
            kv_events,
        } = self;
        fill(polls);
        fill(published);
        fill(built);
        fill(refetched);
        fill(hosts);
        fill(level);
        fill(requests);
        fill(shed);
        fill(answers);
        fill(&durations.family());
        fill(dropped);
        fill(capacity);
        fill(node_silent);
        fill(plan_moves);
        let kv_events::KvEvents {
            blocks,
            lag,
            events,
            gaps,
            received,
        } = kv_events;
        fill(blocks);
        fill(lag);
        fill(events);
        fill(gaps);
        fill(received);
        fill(certificate_starts);
        fill(certificate_ends);
        gate::begin(denials);
        for gauge in [
            missing,
            stale,
            health_ignored,
            panic,
            steered,
            withdrawn,
            kept,
            ignored,
        ] {
            fill(gauge);
        }
        for gauge in [
            assumed,
            known_keys,
            unknown_series,
            contents,
            contents_dropped,
        ] {
            fill(gauge);
        }
        for counter in [held, contents_drops, plan_evictions] {
            fill(counter);
        }
    }
}

#[test]
fn reference_of_metrics_is_of_this_code() {
    let (metrics, xds) = (Metrics::default(), XdsMetrics::default());
    let mut registry = Registry::default();
    weir_pages::register(&mut registry, "weir_control", env!("CARGO_PKG_VERSION"));
    let ours = registry.sub_registry_with_prefix("weir_control");
    metrics.register(ours);
    metrics.register_replica(ours);
    xds.register(registry.sub_registry_with_prefix("weir_xds"));
    metrics.fill();
    xds.fill();
    let mut page = String::new();
    prometheus_client::encoding::text::encode(&mut page, &registry).unwrap();
    let head = weir_reference::head("Metrics of weir-control", "its registry");
    let notes = "
Served at `admin.listen` as `/metrics`. `leader…` and `lock_index` are there with `replicas`; a family without series is absent. Values of labels are shown where the program knows them from the start.
";
    let page = head + notes + &weir_reference::metrics(&page);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    weir_reference::hold(&folder.join("METRICS.md"), &page);
}
