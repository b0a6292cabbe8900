// SPDX-License-Identifier: Apache-2.0
//! Envoy's `/stats?format=json`: counters and gauges by name. Up to 1.38 the filter's are a cluster's where attempts at it
//! are looked after; here they are the filter's in any case, whichever of its shells counts.

use std::collections::BTreeMap;

use serde_json::Value;

/// Before the names of the filter's metrics: as a module of WebAssembly, and as a dynamic module.
const NAMESPACES: [&str; 2] = ["wasmcustom.", "dynamicmodulescustom."];

/// By full name, the filter's without what is before theirs; a histogram has none.
#[derive(Clone, Debug, Default)]
pub struct Stats(BTreeMap<String, u64>);

impl Stats {
    pub(super) fn parse(page: &Value) -> Self {
        let stats = page["stats"].as_array().into_iter().flatten();
        let named = stats.filter_map(|one| Some((one["name"].as_str()?, one["value"].as_u64()?)));
        let mut all = BTreeMap::new();
        for (name, value) in named {
            *all.entry(own(name).to_owned()).or_default() += value;
        }
        Self(all)
    }

    /// Absent where Envoy does not have it.
    pub(super) fn get(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// 0 where Envoy does not have it.
    pub(super) fn count(&self, name: &str) -> u64 {
        self.get(name).unwrap_or(0)
    }

    /// Of a metric of the filter: over all its labels, which Envoy puts into the name.
    pub(super) fn filter(&self, name: &str) -> u64 {
        self.labels(name).map(|(_, value)| value).sum()
    }

    /// Of a metric of the filter with one label's value.
    pub(super) fn filter_with(&self, name: &str, label: &str) -> u64 {
        let forms = [format!("=.={label};"), format!(".{label}")];
        let labels = self.labels(name);
        let with_label =
            labels.filter(|(rest, _)| rest.contains(&forms[0]) || rest.ends_with(&forms[1]));
        with_label.map(|(_, value)| value).sum()
    }

    /// What is behind the name of a metric of the filter, `;.;reason=.=sent;.;` or `.reason.sent`, with its value.
    fn labels(&self, name: &str) -> impl Iterator<Item = (&str, u64)> {
        let of_name = self.0.range(name.to_owned()..);
        let behind = of_name.map_while(move |(one, value)| Some((one.strip_prefix(name)?, *value)));
        behind.filter(|(rest, _)| rest.is_empty() || rest.starts_with(['.', ';']))
    }
}

/// The name of a metric of the filter, without the cluster and the shell that counts it.
fn own(name: &str) -> &str {
    let behind = |namespace: &str| {
        let at = name.find(namespace)?;
        let is_whole = at == 0 || name[..at].ends_with('.');
        is_whole.then(|| &name[at + namespace.len()..])
    };
    NAMESPACES.into_iter().find_map(behind).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn labels_in_names_are_told_apart() {
        let stats = json!({"stats": [
            {"name": "wasmcustom.weir_held_total;.;reason=.=sent;.;", "value": 2},
            {"name": "wasmcustom.weir_held_total;.;reason=.=shed;.;", "value": 3},
            {"name": "wasmcustom.weir_held_total_of_others", "value": 7},
            {"name": "wasmcustom.weir_bounces_total", "value": 5},
            {"histograms": {}},
        ]});
        let stats = Stats::parse(&stats);
        assert_eq!(stats.filter("weir_held_total"), 5);
        assert_eq!(stats.filter_with("weir_held_total", "shed"), 3);
        assert_eq!(stats.filter("weir_bounces_total"), 5);
        assert_eq!(stats.get("nothing"), None);
    }

    #[test]
    fn what_older_envoys_count_for_a_cluster_is_the_filters() {
        let stats = json!({"stats": [
            {"name": "cluster.a.wasmcustom.weir_held_total;.;reason=.=sent;.;", "value": 4},
            {"name": "cluster.b.wasmcustom.weir_held_total;.;reason=.=sent;.;", "value": 2},
            {"name": "cluster.b.upstream_rq_total", "value": 7},
        ]});
        let stats = Stats::parse(&stats);
        assert_eq!(stats.filter("weir_held_total"), 6);
        assert_eq!(stats.filter_with("weir_held_total", "sent"), 6);
        assert_eq!(stats.get("cluster.b.upstream_rq_total"), Some(7));
    }

    /// As Envoy 1.40 tells them, with and without `dynamic_modules_strip_custom_stat_prefix`.
    #[test]
    fn those_of_a_dynamic_module_are_the_same() {
        let stats = json!({"stats": [
            {"name": "dynamicmodulescustom.weir_decisions_total.reason.no_table", "value": 9},
            {"name": "dynamicmodulescustom.weir_decisions_total.reason.known_cached", "value": 2},
            {"name": "dynamicmodulescustom.weir_filter_streams_opened_total", "value": 7},
            {"name": "cluster.rules.dynamicmodulescustom.weir_filter_streams_opened_total", "value": 0},
        ]});
        let stats = Stats::parse(&stats);
        assert_eq!(stats.filter("weir_decisions_total"), 11);
        assert_eq!(stats.filter_with("weir_decisions_total", "no_table"), 9);
        assert_eq!(stats.filter_with("weir_decisions_total", "table"), 0);
        assert_eq!(stats.filter("weir_filter_streams_opened_total"), 7);
    }
}
