// SPDX-License-Identifier: Apache-2.0
//! Envoy does what the filter says: the cluster's policy, the header on its way, retries, and the same hosts.

use std::collections::BTreeSet;

use super::super::dump::DESTINATION;
use super::super::evidence::{Envoy, Evidence, Route, Upstream};
use super::super::finding::{Finding, Look};
use super::super::runbook::Runbook;
use super::super::stats::Stats;
use super::filter::is_of_callers;
use super::listed;
use crate::screen::counted;

/// Envoy's default, which knows no priorities.
const FEW_REQUESTS: u64 = 1_024;

pub(super) fn look(envoy: &Envoy, evidence: &Evidence) -> Vec<Finding> {
    let mut found = Vec::new();
    for (connections, plugin) in envoy.plugins().filter(|(_, one)| is_of_callers(one)) {
        for (name, table, _) in plugin.clusters() {
            // Of `*` it is not known which.
            let Some(upstream) = envoy.clusters.get(name) else {
                continue;
            };
            let routes = connections.routes.iter();
            let routes: Vec<_> = routes.filter(|one| one.clusters.contains(name)).collect();
            let at = format!("{}, cluster {name:?}", envoy.node);
            found.extend(policy(&at, upstream));
            found.extend(way(&at, &routes, upstream));
            found.extend(retries(&at, &routes));
            found.extend(limits(&at, envoy, name));
            found.extend(hosts(&at, envoy, name, table, evidence));
            found.extend(answers(&at, envoy, name));
        }
    }
    found.extend(followed(envoy, &found));
    found
}

fn policy(at: &str, upstream: &Upstream) -> Vec<Finding> {
    let mut look = Look::at("cluster's policy", at);
    if !upstream.follows {
        look.broken(
            format!(
                "it balances by {}, so what the filter says is not followed",
                upstream.balances
            ),
            "give it load_balancing_policy override_host: part 4 of envoy-config/static/envoy.yaml. Where Consul \
             says it, weirctl consul check names what is in the way",
        ).alerts(Runbook::WeirChoicesIgnored);
    } else if !upstream.reads_destination {
        let headers = upstream.headers.iter().map(String::as_str);
        look.broken(
            format!(
                "override_host reads {}, and the filter writes {DESTINATION:?}",
                listed(headers)
            ),
            format!("write override_host_sources: [{{ header: {DESTINATION} }}]"),
        )
        .alerts(Runbook::WeirChoicesIgnored);
    }
    look.or_fine("override_host by the filter's header")
}

fn way(at: &str, routes: &[&Route], upstream: &Upstream) -> Vec<Finding> {
    let mut look = Look::at("the header's way", at);
    if routes.iter().any(|route| route.drops_destination) {
        look.broken(
            format!("a route removes {DESTINATION} (request_headers_to_remove) before the host is picked"),
            "remove it in the cluster instead: part 5 of envoy-config/static/envoy.yaml",
        ).alerts(Runbook::WeirChoicesIgnored);
    }
    if upstream.keeps_destination {
        look.poor(
            format!("hosts get {DESTINATION}, which tells them the addresses of the others"),
            "remove it in the cluster: part 5 of envoy-config/static/envoy.yaml",
        );
    }
    look.or_fine("from the filter to the policy and no further")
}

fn retries(at: &str, routes: &[&Route]) -> Vec<Finding> {
    let mut look = Look::at("retries", at);
    if routes.iter().any(|route| !route.retries) {
        look.poor(
            "a route has no retry_policy: a host that dies costs its requests until the next table",
            "add one: part 3 of envoy-config/static/envoy.yaml",
        );
    } else if routes.iter().any(|route| !route.skips_tried_hosts) {
        look.poor(
            "a route retries without previous_hosts: the second try may hit the dead host again",
            "add retry_host_predicate previous_hosts: part 3 of envoy-config/static/envoy.yaml",
        );
    }
    match routes.is_empty() {
        true => Vec::new(),
        false => look.or_fine("to the next host of the ranked list"),
    }
}

fn limits(at: &str, envoy: &Envoy, name: &str) -> Vec<Finding> {
    let mut look = Look::at("circuit breakers", at);
    let Some(&limit) = envoy.max_requests.get(name) else {
        return Vec::new();
    };
    if limit <= FEW_REQUESTS {
        look.poor(
            format!(
                "Envoy refuses what comes beside {limit} requests in flight, important ones too"
            ),
            "raise circuit_breakers: part 6 of envoy-config/static/envoy.yaml",
        );
    }
    look.or_fine(format!("{limit} requests in flight at most"))
}

fn hosts(at: &str, envoy: &Envoy, name: &str, table: &str, evidence: &Evidence) -> Vec<Finding> {
    let known = evidence.answering().map(|(_, control)| &control.tables);
    let mut known = known.filter(|tables| tables.leads());
    let Some(cluster) = known.find_map(|tables| tables.clusters.get(table)) else {
        return Vec::new();
    };
    let mut look = Look::at("the same hosts", at);
    let has = envoy.hosts.get(name).into_iter().flatten();
    let has: BTreeSet<&str> = has.map(|host| &*host.address).collect();
    let told: BTreeSet<&str> = cluster.hosts.iter().map(|host| &*host.address).collect();
    let missing: Vec<_> = told.difference(&has).copied().collect();
    let unknown: Vec<_> = has.difference(&told).copied().collect();
    if !told.is_empty() && has.is_disjoint(&told) {
        look.broken(
            format!(
                "Envoy has {}, weir-control names {}: no choice can be followed",
                listed(has.iter().copied()),
                listed(told.iter().copied())
            ),
            "write the same ip:port in both",
        )
        .alerts(Runbook::WeirChoicesIgnored);
    } else if !missing.is_empty() {
        look.poor(
            format!(
                "weir-control names {}, which Envoy has not",
                listed(missing)
            ),
            "write the same ip:port in both: what is chosen there goes to the next of the list",
        );
    } else if !unknown.is_empty() {
        look.poor(
            format!(
                "Envoy has {}, which weir-control does not name: it is never chosen",
                listed(unknown)
            ),
            "add it to weir-control's hosts",
        );
    }
    look.or_fine(format!("{} in both", counted(has.len(), "host")))
}

/// Whether a mesh lets requests in.
fn answers(at: &str, envoy: &Envoy, name: &str) -> Vec<Finding> {
    let count = |status: &str| {
        envoy
            .stats
            .count(&format!("cluster.{name}.upstream_rq_{status}"))
    };
    let (refused, all) = (count("403"), count("completed"));
    let mut look = Look::at("hosts let it in", at);
    if refused > 0 && refused == all {
        look.broken(
            format!("all {all} answers were 403"),
            "in a mesh the hosts' sidecar refuses this caller: an intention (Consul) or authorization policy is missing",
        );
    } else if refused > 0 {
        look.poor(
            format!("{refused} of {all} answers were 403"),
            "see whether the application said that, or an intention is missing at some hosts",
        );
    }
    match all {
        0 => Vec::new(),
        all => look.or_fine(format!(
            "{}, none of them 403",
            counted(all as usize, "answer")
        )),
    }
}

/// The counter goes back to Envoy's start, so a cause that is there or growth has to say that it is so now.
fn followed(envoy: &Envoy, found: &[Finding]) -> Vec<Finding> {
    let mut look = Look::at("choices are followed", &envoy.node);
    let ignored = |stats: &Stats| stats.filter("weir_choices_ignored_total");
    let grows = envoy.growth(ignored) > 0;
    let ignored = ignored(&envoy.stats);
    let cause = Some(Runbook::WeirChoicesIgnored);
    let has_cause = found.iter().any(|finding| finding.runbook == cause);
    let decisions = envoy.stats.filter("weir_decisions_total");
    if ignored > 0 && !grows && !has_cause {
        look.poor(
            format!("Envoy sent {ignored} requests to another host than the one named first, since its start"),
            "nothing, if that was mended; if requests go on and it grows, see the hosts' addresses in both",
        );
    } else if ignored > 0 {
        look.broken(
            format!("Envoy sent {ignored} requests to another host than the one named first"),
            "see \"cluster's policy\", \"the header's way\" and \"the same hosts\"",
        )
        .alerts(Runbook::WeirChoicesIgnored);
    }
    match decisions {
        0 => Vec::new(),
        many => look.or_fine(format!(
            "{}, none ignored",
            counted(many as usize, "decision")
        )),
    }
}
