// SPDX-License-Identifier: Apache-2.0
//! What weir-control knows of hosts: that there are some, and that their pages answer with all figures.

use std::collections::BTreeMap;

use super::super::evidence::Control;
use super::super::finding::{Finding, Look};
use super::super::runbook::Runbook;
use super::listed;
use crate::answers::{Cluster, Host};
use crate::page::Address;

pub(super) fn look(control: &Control, address: &Address) -> Vec<Finding> {
    let mut found = Vec::new();
    // Only the leader polls.
    if !control.tables.leads() {
        return found;
    }
    for (name, cluster) in &control.tables.clusters {
        let at = format!("{address}, cluster {name:?}");
        found.extend(hosts(&at, cluster));
        found.extend(sources(&at, cluster));
        found.extend(figures(&at, cluster));
    }
    found
}

fn hosts(at: &str, cluster: &Cluster) -> Vec<Finding> {
    let mut look = Look::at("hosts", at);
    if let Some(reason) = &cluster.not_pushed {
        look.broken(reason.clone(), "see \"sources\"")
            .alerts(Runbook::WeirTableMissing);
    }
    if let Some(reason) = &cluster.hosts_kept {
        look.poor(
            format!("the hosts are not those that are written now: {reason}"),
            "write them anew, or leave the list as it is",
        )
        .alerts(Runbook::WeirHostsKept);
    }
    let is = |state: &'static str| {
        let hosts = cluster.hosts.iter();
        hosts.filter(move |host| host.state == state)
    };
    let (up, down) = (is("up").count(), is("down").count());
    if up == 0 && cluster.not_pushed.is_none() {
        look.broken(
            format!("none of {} is up", cluster.hosts.len()),
            "start them; until then Envoy's own policy chooses",
        )
        .alerts(Runbook::WeirNoHostUp);
    } else if down > 0 {
        let names = is("down").map(|host| &*host.address);
        look.poor(
            format!("down: {}", listed(names)),
            "start them, or remove them",
        )
        .alerts(Runbook::WeirHostsDown);
    }
    if cluster.panics {
        look.poor(
            "panic mode: so few are up that those which drain are chosen as well",
            "add hosts, or lower policy.panic_threshold",
        )
        .alerts(Runbook::WeirPanic);
    }
    if cluster.health_ignored {
        look.poor(
            "so many refuse connections that none is taken out",
            "see whether weir-control itself can reach them",
        )
        .alerts(Runbook::WeirHealthIgnored);
    }
    look.or_fine(format!("{up} up"))
}

fn sources(at: &str, cluster: &Cluster) -> Vec<Finding> {
    let mut look = Look::at("sources", at);
    for (source, said) in &cluster.sources {
        for reason in said.error.iter().chain(&said.complaints) {
            look.broken(format!("{source}: {reason}"), mend(source))
                .alerts(Runbook::WeirPollsFail);
        }
    }
    // One line for all hosts that say the same.
    let mut failing: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    let mut lacking = failing.clone();
    for host in &cluster.hosts {
        for (source, said) in &host.sources {
            if let Some(reason) = &said.error {
                let hosts = failing.entry((source, reason)).or_default();
                hosts.push(&host.address);
            }
            for reason in &said.complaints {
                let hosts = lacking.entry((source, reason)).or_default();
                hosts.push(&host.address);
            }
        }
    }
    for ((source, reason), hosts) in failing {
        look.broken(
            format!("{source} of {}: {reason}", listed(hosts)),
            mend(source),
        )
        .alerts(Runbook::WeirPollsFail);
    }
    for ((source, reason), hosts) in lacking {
        look.poor(
            format!("{source} of {}: {reason}", listed(hosts)),
            mend(source),
        );
    }
    if cluster.unknown_series > 0 {
        let series = cluster.unknown_series;
        look.poor(
            format!("Prometheus has {series} series of hosts that are not in this cluster"),
            "see that its label of hosts is the ip:port that weir-control has, and narrow prometheus.queries",
        );
    }
    let asked = cluster.hosts.iter().flat_map(|host| host.sources.keys());
    let asked = asked.chain(cluster.sources.keys()).count();
    match asked {
        0 => Vec::new(),
        _ => look.or_fine("all answer, with all figures"),
    }
}

fn mend(source: &str) -> &'static str {
    match source {
        "scrape" => {
            "see that the host serves this page with these names, or write the names that it has: clusters.NAME.scrape"
        }
        "cache" => {
            "see that the host serves its cache contents: clusters.NAME.cache names the path"
        }
        "kv_events" => {
            "see that the engine publishes its events, and at which ports: clusters.NAME.kv_events names them"
        }
        "consul" => "see that Consul answers weir-control: clusters.NAME.consul",
        "dns" => "see that the DNS server answers weir-control: clusters.NAME.dns",
        "kubernetes" => {
            "see that the API server answers weir-control, which may read the service's endpointslices: \
             clusters.NAME.kubernetes"
        }
        "prometheus" => {
            "see that Prometheus answers and scrapes the hosts: clusters.NAME.prometheus"
        }
        "connect" => "see that the host runs and listens there",
        _ => "weir-control's log and /tables have more",
    }
}

fn figures(at: &str, cluster: &Cluster) -> Vec<Finding> {
    let mut look = Look::at("what hosts say", at);
    let which = |wrong: fn(&Host) -> bool| {
        let hosts = cluster.hosts.iter().filter(|host| wrong(host));
        hosts.map(|host| &*host.address).collect::<Vec<_>>()
    };
    let unknown = which(|host| host.capacity_millicores == 0);
    if cluster.selection == "estimate" && !unknown.is_empty() {
        look.poor(
            format!("how many cores {} have is not known, so `estimate` guesses how long requests wait there", listed(unknown)),
            "write hosts[].capacity_millicores, or run weir-governor on the nodes",
        );
    }
    let silent = which(|host| host.node_silent);
    if !silent.is_empty() {
        look.poor(
            format!("the governors of the nodes of {} are silent", listed(silent)),
            "start them again: a stopped one leaves cores and jobs as they are; their capacity is the next source's",
        )
        .alerts(Runbook::WeirGovernorSilent);
    }
    let stale = which(|host| host.state == "up" && host.stale);
    if !stale.is_empty() {
        let most = 2 * stale.len() > cluster.hosts.len();
        look.poor(
            format!("the load of {} is too old to count", listed(stale)),
            "see \"sources\"; without a source, loads come by answers alone (endpoint-load-metrics)",
        )
        .alerts(match most {
            true => Runbook::WeirMostHostsStale,
            false => Runbook::WeirHostsStale,
        });
    }
    if cluster.cache_contents_dropped {
        look.poor(
            "memory.limit is reached, so nobody is told what hosts have cached",
            "raise memory.limit",
        )
        .alerts(Runbook::WeirCacheContentsDropped);
    }
    if !cluster.choices_ignored_by.is_empty() {
        let names = cluster.choices_ignored_by.iter().map(String::as_str);
        look.broken(
            format!(
                "the Envoys of {} send requests elsewhere than their filter says",
                listed(names)
            ),
            "weirctl doctor --envoy with the admin address of one of them names the cause",
        )
        .alerts(Runbook::WeirChoicesIgnored);
    }
    look.or_fine("capacity known, load fresh, choices followed")
}
