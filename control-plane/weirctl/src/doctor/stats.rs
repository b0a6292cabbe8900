// SPDX-License-Identifier: Apache-2.0
//! Envoy's `/stats?format=json`: counters and gauges by name. Up to 1.38 the filter's are a cluster's where attempts at it
//! are looked after; here they are the filter's in any case.

use std::collections::BTreeMap;

use serde_json::Value;

/// By full name; a histogram has none.
#[derive(Clone, Debug, Default)]
pub struct Stats(BTreeMap<String, u64>);

impl Stats {
    pub(super) fn parse(page: &Value) -> Self {
        let stats = page["stats"].as_array().into_iter().flatten();
        let named = stats.filter_map(|one| Some((one["name"].as_str()?, one["value"].as_u64()?)));
        let mut all = BTreeMap::new();
        for (name, value) in named {
            let own = name.find(".wasmcustom.").map_or(name, |at| &name[at + 1..]);
            *all.entry(own.to_owned()).or_default() += value;
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
        let start = format!("wasmcustom.{name}");
        let of_name = self.0.range(start.clone()..);
        let of_name = of_name.take_while(|(one, _)| one.starts_with(&start));
        let exact = of_name.filter(|(one, _)| {
            let rest = &one[start.len()..];
            rest.is_empty() || rest.starts_with(['.', ';'])
        });
        exact.map(|(_, value)| value).sum()
    }

    /// Of a metric of the filter with one label's value.
    pub(super) fn filter_with(&self, name: &str, label: &str) -> u64 {
        let start = format!("wasmcustom.{name}");
        let of_name = self.0.iter();
        let with_label = of_name
            .filter(|(one, _)| one.starts_with(&start) && one.contains(&format!("=.={label};")));
        with_label.map(|(_, value)| value).sum()
    }
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
}
