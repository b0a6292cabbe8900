// SPDX-License-Identifier: Apache-2.0
//! What a good configuration leaves out that its policies go by. None of it is an error: choices are only worse.

use std::collections::BTreeSet;
use std::fmt::Write;

use weir_policy::{Overload, Selection, Serves};

use super::{Cluster, Config, Registry};

impl Config {
    /// How much is configured, in words.
    pub fn summary(&self) -> String {
        let hosts: usize = self.clusters.values().map(|one| one.hosts.len()).sum();
        let registries = self.clusters.values().flat_map(|one| &one.registry);
        let registries: BTreeSet<&str> = registries.map(Registry::title).collect();
        let mut text = counted(self.clusters.len(), "cluster");
        let _ = write!(text, ", {}", counted(hosts, "host"));
        for registry in registries {
            let _ = write!(text, " and those that {registry} names");
        }
        if let Some(policies) = &self.policies {
            let namespaces = policies.namespaces.join(", ");
            let _ = write!(text, ", and WeirPolicies of {namespaces}");
        }
        text
    }

    /// A line for each want: the field, what is missed and what to write.
    pub fn wants(&self) -> Vec<String> {
        let clusters = self.clusters.iter();
        let wants = clusters.flat_map(|(name, cluster)| {
            let wants = [capacity(cluster), load(cluster), keys(cluster)];
            let line = move |(field, words)| format!("clusters.{name}.{field}: {words}");
            wants.into_iter().flatten().map(line)
        });
        wants.collect()
    }
}

type Want = Option<(&'static str, String)>;

/// Without it a wait is guessed: by trial that costs `estimate` its lead over hashing.
fn capacity(cluster: &Cluster) -> Want {
    let unknown = cluster.hosts.iter();
    let unknown = unknown.filter(|host| host.capacity_millicores == 0).count();
    let guesses = match cluster.policy.overload {
        Overload::Slots => Some("`slots` guesses whether a core is idle there"),
        // What delays a prompt is what is to be read, however many cores there are.
        _ if cluster.policy.selection == Selection::Estimate
            && cluster.policy.serves == Serves::Jobs =>
        {
            Some("`estimate` guesses how long requests wait there")
        }
        _ => None,
    };
    let guesses = guesses.filter(|_| unknown > 0)?;
    let of = format!("of {unknown} of {}", counted(cluster.hosts.len(), "host"));
    let (page, remedy) = match &cluster.scrape {
        Some(scrape) => (format!("; unless pages name them ({}),", scrape.cores), ""),
        None => (", so".to_owned(), ", let their pages name them (scrape)"),
    };
    let words = format!(
        "how many cores there are is not written {of}{page} {guesses}; write it{remedy}, or run weir-governor on the nodes"
    );
    Some(("hosts[].capacity_millicores", words))
}

/// Some policies have nothing else to go by.
fn load(cluster: &Cluster) -> Want {
    if cluster.scrape.is_some() || cluster.prometheus.is_some() {
        return None;
    }
    let (overload, selection) = (cluster.policy.overload, cluster.policy.selection);
    let goes_by_load = match overload {
        Overload::Breaker { .. }
        | Overload::DynamicBreaker(_)
        | Overload::Dagor
        | Overload::Slots => true,
        Overload::None | Overload::Breakwater => match selection {
            Selection::Dynamic | Selection::Estimate | Selection::HotCold { .. } => true,
            Selection::Baseline
            | Selection::Random
            | Selection::Rendezvous
            | Selection::CachingPlan => false,
        },
    };
    goes_by_load.then(|| {
        let words = format!(
            "nothing reads the load of hosts, so `{}` and `{}` know what answers carry (endpoint-load-metrics) and what \
             sidecars have in flight, no more; write scrape or prometheus",
            selection.as_str(),
            overload.as_str(),
        );
        ("scrape", words)
    })
}

fn keys(cluster: &Cluster) -> Want {
    let selection = cluster.policy.selection;
    let goes_by_keys = matches!(selection, Selection::Dynamic | Selection::Estimate);
    let is_told = cluster.contents_source().is_some() || cluster.is_planned();
    (goes_by_keys && !is_told).then(|| {
        let words = format!(
            "nothing reads which keys hosts have cached, so `{}` knows only where sidecars sent them lately; write cache, \
             where hosts have such a page, or kv_events, where they are vLLM or SGLang",
            selection.as_str()
        );
        ("cache", words)
    })
}

/// As in `2 hosts`.
pub(crate) fn counted(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}
