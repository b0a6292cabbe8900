// SPDX-License-Identifier: Apache-2.0
//! The stream from the filter to weir-control, and the tables that come by it.

use std::collections::{BTreeMap, BTreeSet};

use super::super::evidence::{Envoy, Evidence, Plugin};
use super::super::finding::{Finding, Look};
use super::super::runbook::Runbook;
use super::super::stats::Stats;
use super::filter::is_of_callers;
use super::listed;
use crate::screen::counted;

pub(super) fn look(envoy: &Envoy, evidence: &Evidence) -> Vec<Finding> {
    let mut found = Vec::new();
    for (_, plugin) in envoy.plugins().filter(|(_, one)| is_of_callers(one)) {
        if plugin.settings.is_err() {
            continue;
        }
        found.extend(cluster(envoy, plugin));
        found.extend(is_open(envoy, plugin, evidence));
        found.extend(tables(envoy, plugin, evidence));
    }
    found
}

/// Sidecars that weir-control takes for one.
pub(super) fn shared_ids(evidence: &Evidence) -> Vec<Finding> {
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    for asked in &evidence.envoys {
        if let Ok(envoy) = &asked.said {
            let callers = envoy.plugins().filter(|(_, one)| is_of_callers(one));
            let ids = callers.filter_map(|(_, plugin)| envoy.sidecar(plugin));
            // A mesh puts the filter into several listeners of one sidecar.
            let mut ids: BTreeSet<_> = ids.collect();
            // Its filter may not have come yet.
            if envoy.plugins().next().is_none() {
                ids.insert(&envoy.node);
            }
            for id in ids {
                *by_id.entry(id).or_default() += 1;
            }
        }
    }
    let mut found = Vec::new();
    for (id, _) in by_id.into_iter().filter(|(_, count)| *count > 1) {
        let mut look = Look::at("stream", id);
        look.broken(
            "several Envoys have this node id or `proxy`, so weir-control counts them as one sidecar",
            "give each Envoy an id of its own: --service-node, node.id of its bootstrap, or `proxy` of the plugin",
        )
        .alerts(Runbook::WeirSidecarsOfOneId);
        found.extend(look.or_fine(""));
    }
    found
}

fn cluster(envoy: &Envoy, plugin: &Plugin) -> Vec<Finding> {
    let mut look = Look::at("control_cluster", &envoy.node);
    let Some(name) = plugin.control_cluster() else {
        look.broken(
            "the plugin's configuration has control_cluster: null, so it gets no tables",
            "name Envoy's cluster that has weir-control",
        )
        .alerts(Runbook::WeirSidecarAlone);
        return look.or_fine("");
    };
    let Some(control) = envoy.clusters.get(name) else {
        let there = listed(envoy.clusters.keys().map(String::as_str));
        look.broken(
            format!("control_cluster is {name:?}, which this Envoy has not; it has {there}"),
            "write the name of the cluster that has weir-control, or add it: part 7 of envoy-config/static/envoy.yaml",
        ).alerts(Runbook::WeirSidecarAlone);
        return look.or_fine("");
    };
    if !control.http2 {
        look.broken(
            format!("cluster {name:?} speaks HTTP/1.1, and weir-control only HTTP/2"),
            "give it http2_protocol_options: part 7 of envoy-config/static/envoy.yaml",
        )
        .alerts(Runbook::WeirSidecarAlone);
    }
    let hosts = envoy.hosts.get(name).map_or(&[][..], Vec::as_slice);
    if hosts.is_empty() {
        look.broken(
            format!("cluster {name:?} has no endpoint"),
            "give it weir-control's address (xds.listen)",
        )
        .alerts(Runbook::WeirSidecarAlone);
    }
    let failing = hosts.iter();
    let failing: Vec<_> = failing
        .filter(|host| host.connections == 0 && host.failed_connections > 0)
        .map(|host| &*host.address)
        .collect();
    let tls = |stat: &str| envoy.stats.count(&format!("cluster.{name}.ssl.{stat}"));
    let refused = |stats: &Stats| -> u64 {
        let kinds = ["error", "san", "cert_hash"];
        let of_kind = |kind| stats.count(&format!("cluster.{name}.ssl.fail_verify_{kind}"));
        kinds.into_iter().map(of_kind).sum()
    };
    let many = refused(&envoy.stats);
    let is_connected = hosts.iter().any(|host| host.connections > 0);
    if failing.len() == hosts.len() && !failing.is_empty() {
        look.broken(
            format!("no connection to {}", listed(failing)),
            "see that weir-control runs, and that this is its xds.listen",
        )
        .alerts(Runbook::WeirSidecarAlone);
    }
    if envoy.growth(refused) > 0 || many > 0 && !is_connected {
        look.broken(
            format!("weir-control's certificate was refused {many} times"),
            "see that it has not expired, is issued by the CA that the cluster trusts, and has the name that it wants",
        ).alerts(Runbook::WeirSidecarAlone);
    } else if many > 0 {
        look.poor(
            format!("weir-control's certificate was refused {many} times since Envoy's start, and is accepted now"),
            "nothing, if that was mended; if several weir-controls are there, see the certificate of each",
        );
    } else if control.tls && tls("connection_error") > 0 && tls("handshake") == 0 {
        look.broken(
            "no TLS connection to weir-control has come about",
            "weir-control refuses this Envoy's certificate, or does not speak TLS there (xds.tls)",
        )
        .alerts(Runbook::WeirSidecarAlone);
    }
    look.or_fine(format!("{name:?}, {}", counted(hosts.len(), "endpoint")))
}

fn is_open(envoy: &Envoy, plugin: &Plugin, evidence: &Evidence) -> Vec<Finding> {
    if plugin.control_cluster().is_none() {
        return Vec::new();
    }
    let mut look = Look::at("stream", &envoy.node);
    let stats = &envoy.stats;
    let opened = stats.filter("weir_filter_streams_opened_total");
    if stats.filter("weir_filter_connected") == 0 {
        look.broken(
            format!("nothing has come by the stream that is open; {opened} were opened so far"),
            "see \"control_cluster\"; Envoy's log has a line of `weir` for each stream that ends",
        )
        .alerts(Runbook::WeirSidecarAlone);
    }
    let ended = stats.filter_with("weir_report_streams_ended_total", "refused");
    if ended > 0 {
        look.poor(
            format!("weir-control has refused {ended} streams of reports"),
            "weir-control's log has the reason: rights (`authorization`), or more proxies than reports.max_proxies",
        ).alerts(Runbook::WeirSidecarReportsRefused);
    }
    let Some(id) = envoy.sidecar(plugin) else {
        look.poor(
            "nothing names this sidecar, so its id is the name of its machine, which two Envoys may share",
            "write `proxy` in the plugin's configuration, or start Envoy with --service-node",
        );
        return look.or_fine("");
    };
    let mut controls = evidence.answering().peekable();
    let knows = |id: &str| {
        let mut proxies = evidence
            .answering()
            .flat_map(|(_, control)| &control.tables.proxies);
        proxies.any(|proxy| proxy.proxy == id)
    };
    if controls.peek().is_some() && !knows(id) {
        let asked: Vec<_> = controls.map(|(address, _)| address.to_string()).collect();
        look.broken(
            format!("no weir-control that was asked ({}) has a stream of {id:?}", asked.join(", ")),
            "it is connected to another one: compare its endpoint with xds.listen, and name every replica: --control",
        );
    }
    look.or_fine(format!("open, as {id:?}"))
}

fn tables(envoy: &Envoy, plugin: &Plugin, evidence: &Evidence) -> Vec<Finding> {
    let mut look = Look::at("tables", &envoy.node);
    for (address, control) in evidence.answering() {
        let known = &control.tables.clusters;
        for (name, table, settings) in plugin.clusters() {
            let Some(cluster) = known.get(table) else {
                let there = listed(known.keys().map(String::as_str));
                look.broken(
                    format!("cluster {name:?} wants table {table:?}, which weir-control at {address} has not; it has {there}"),
                    "write clusters.NAME.table as weir-control calls it, or add the cluster there",
                ).alerts(Runbook::WeirChoosesBlindly);
                continue;
            };
            let salted = settings["key_salt"].is_string();
            if salted != cluster.keys_salted {
                let who = if salted { "the filter" } else { "weir-control" };
                look.broken(
                    format!("of cluster {name:?} only {who} salts its keys, so no key is found at any host"),
                    "write the same salt in both: clusters.NAME.key_salt and keys.salt_file",
                );
            }
        }
        let of_this = control.tables.proxies.iter();
        // The filter's stream, and Envoy's own where weir-control configures it.
        let of_this = of_this.filter(|proxy| match &*proxy.kind {
            "envoy" => proxy.proxy == envoy.node,
            _ => Some(&*proxy.proxy) == envoy.sidecar(plugin),
        });
        for refusal in of_this.flat_map(|proxy| &proxy.refuses) {
            let names = listed(refusal.resources.keys().map(String::as_str));
            look.broken(
                format!("it refuses {names}: {}", refusal.reason),
                "it keeps the last good one; most often the filter is older than weir-control",
            )
            .alerts(Runbook::WeirTablesRefused);
        }
    }
    let stale = envoy.stats.filter("weir_stale_tables");
    if stale > 0 {
        look.broken(
            format!(
                "{stale} tables are missing or older than their stale_after, so load is not counted"
            ),
            "see \"stream\" and \"sources\"",
        )
        .alerts(Runbook::WeirSidecarStale);
    }
    let left_out = envoy.stats.filter("weir_cache_contents_left_out");
    if left_out > 0 {
        look.poor(
            format!("cache contents of {left_out} clusters have no room in a VM"),
            "raise cache_limit, or have fewer clusters in one Envoy",
        )
        .alerts(Runbook::WeirCacheContentsLeftOut);
    }
    look.or_fine("accepted and fresh")
}
