// SPDX-License-Identifier: Apache-2.0
//! METRICS.md: every metric that the module defines.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;

use weir_harness::{Proxy, RULES};

const MEANINGS: [(&str, &str); 19] = [
    (
        "weir_decisions_total",
        "Requests by reason. A held request counts again by the reason that ends it",
    ),
    (
        "weir_held_requests",
        "Requests that wait for a host now, in all workers. Those in a worker's VM that dies stay counted",
    ),
    ("weir_held_total", "Requests that waited, by the end of it"),
    (
        "weir_filter_connected",
        "1 while something has come through the stream that is open",
    ),
    (
        "weir_filter_streams_opened_total",
        "Streams opened. More than a few an hour: weir-control is unwell",
    ),
    (
        "weir_resources_refused_total",
        "Resources answered with a NACK; Envoy's log says why",
    ),
    (
        "weir_report_streams_ended_total",
        "Streams of reports that weir-control has ended; of `refused` Envoy's log has the status, weir-control's the reason",
    ),
    (
        "weir_failing_hosts_total",
        "Ejections of hosts that fail what other hosts do. Envoy's log says which, at `warning`",
    ),
    (
        "weir_choices_ignored_total",
        "Requests that Envoy sent to another host than the one named first, without having tried that one and although it has it. Envoy's log says so once, at `warning`, where that is the rule",
    ),
    (
        "weir_crossings_total",
        "Requests sent to a host that is known to be in another zone than this proxy ([zones](../../control-plane/DESIGN.md#zones))",
    ),
    (
        "weir_disbelieved_requests_total",
        "Requests whose headers of key, priority or user were removed, because `trust` does not believe their caller. Envoy's log says so once, at `warning`",
    ),
    (
        "weir_cache_contents_left_out",
        "Clusters whose cache contents a VM has no room for (`cache_limit`); of several VMs the one that looked last. Envoy's log names them, at `warning`",
    ),
    (
        "weir_stale_tables",
        "Clusters whose table is missing or older than its `stale_after`",
    ),
    (
        "weir_bodies_total",
        "With `key.prompt` or `key.json`: requests with a body, by what became of reading it: `read` to its end or up to the key, `cut` after `max_bytes` or a first part, `late` as it did not begin, or end, in time, `malformed`, `unread` as it is no JSON by its headers, is compressed, or the plugin lacks `allow_on_headers_stop_iteration`. `late`, `malformed` and `unread` ones have no key",
    ),
    (
        "weir_prefills_total",
        "With `prefill`: requests whose host was named, by who reads the prompt: `named`, another host, which the header names; else the host itself, as the prompt is `short` or it has enough of it (`cached`), or as there is `no_host` that would: no table, or nobody who admits the request",
    ),
    (
        "weir_bounces_total",
        "Requests that a host gave back, so that the next one got them; of a request's hosts each counts",
    ),
    (
        "weir_inbound_bounced_total",
        "With `role: host`: requests given back, as they would have waited for longer than they might",
    ),
    (
        "weir_inbound_refused_total",
        "With `role: host`: requests of callers that go by its credits (policy `breakwater`) refused, as all that come would wait for more than twice the `target_delay`",
    ),
    (
        "weir_inbound_requests",
        "With `role: host`: requests at the application now, here in whole or answered, in all workers. Those in a worker's VM that dies stay counted, and count as work that is there, until this Envoy restarts",
    ),
];

#[test]
fn reference_of_metrics_is_of_this_code() {
    let proxy = Proxy::start(RULES);
    let mut metrics: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for name in proxy.host.metrics().names() {
        let (name, labels) = name.split_once(";.;").unwrap_or((&name, ""));
        let labels = labels.trim_end_matches(";.;").replace("=.=", ": ");
        metrics.entry(name.to_owned()).or_default().push(labels);
    }
    let mut page = weir_reference::head(
        "Metrics of the filter",
        "the metrics that the module defines",
    );
    page.push_str("
In Envoy's `/stats/prometheus` under these names, in `/stats` with `wasmcustom.` before them. Labels need a tag in Envoy's bootstrap, [as here](README.md#for-operators), without which they stay in the name.

| metric | type | labels | meaning |
|---|---|---|---|
");
    for (name, labels) in &metrics {
        let meaning = MEANINGS.iter().find(|(known, _)| known == name);
        let (_, meaning) = meaning.unwrap_or_else(|| panic!("nothing is said of {name}"));
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        let labels: Vec<_> = labels.iter().filter(|label| !label.is_empty()).collect();
        let label = labels.first().and_then(|label| label.split_once(": "));
        let shown = label.map_or_else(
            || "–".to_owned(),
            |(name, _)| {
                let values = labels.iter().filter_map(|label| label.split_once(": "));
                let values: Vec<_> = values.map(|(_, value)| format!("`{value}`")).collect();
                format!("`{name}`: {}", values.join(", "))
            },
        );
        let _ = writeln!(page, "| `{name}` | {kind} | {shown} | {meaning} |");
    }
    let gone = MEANINGS
        .iter()
        .find(|(name, _)| !metrics.contains_key(*name));
    assert!(gone.is_none(), "{gone:?} is defined no more");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    weir_reference::hold(&folder.join("METRICS.md"), &page);
}
