// SPDX-License-Identifier: Apache-2.0
//! What is written of clusters, and what was found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use tracing::info;
use weir_policy::MAX_HOSTS;

use super::union::union;
use crate::config::{Cluster, Config, Host, Registry};
use crate::sources::discovery::Found;

/// What is written and what was found.
#[derive(Debug)]
pub struct Membership {
    written: Arc<Config>,
    found: BTreeMap<String, Discovery>,
}

/// What is known of one cluster.
#[derive(Debug)]
struct Discovery {
    registry: Registry,
    /// As found last.
    hosts: Vec<Host>,
    /// They are the answer to a question that is no longer asked, and stay until the new one has hosts.
    of_question_before: bool,
    /// As first seen.
    trust_domain: Option<String>,
}

impl Membership {
    /// Nothing was found yet.
    pub fn new(written: Arc<Config>) -> Self {
        let mut membership = Self {
            written: written.clone(),
            found: BTreeMap::new(),
        };
        membership.configure(written);
        membership
    }

    /// Takes a new configuration. What was found stays: for good where the question is the same, else until the
    /// new one is answered with hosts.
    pub fn configure(&mut self, written: Arc<Config>) {
        let mut old = std::mem::take(&mut self.found);
        for (name, cluster) in &written.clusters {
            let Some(registry) = &cluster.registry else {
                continue;
            };
            let discovery = match old.remove(name) {
                // The same settings are the same task.
                Some(kept) if kept.registry == *registry => kept,
                Some(kept) if kept.registry.finds_the_same(registry) => Discovery {
                    registry: registry.clone(),
                    ..kept
                },
                kept => {
                    let hosts = kept.map_or_else(Vec::new, |kept| kept.hosts);
                    Discovery {
                        registry: registry.clone(),
                        of_question_before: !hosts.is_empty(),
                        hosts,
                        trust_domain: None,
                    }
                }
            };
            self.found.insert(name.clone(), discovery);
        }
        self.written = written;
    }

    /// The clusters with all of their hosts.
    pub fn effective(&self) -> Arc<Config> {
        let mut config = Config::clone(&self.written);
        for (name, discovery) in &self.found {
            if let Some(cluster) = config.clusters.get_mut(name) {
                let hosts = union(&cluster.hosts, &discovery.hosts);
                *cluster = Arc::new(Cluster {
                    hosts,
                    ..Cluster::clone(cluster)
                });
            }
        }
        Arc::new(config)
    }

    /// Takes in what was found. Whether the hosts are others now, and what is to be complained of.
    pub fn find(&mut self, cluster: &str, found: Found) -> (bool, Vec<String>) {
        let written = self
            .written
            .clusters
            .get(cluster)
            .map_or(0, |cluster| cluster.hosts.len());
        let Some(discovery) = self.found.get_mut(cluster) else {
            return (false, Vec::new());
        };
        let Found {
            mut hosts,
            mut complaints,
            ..
        } = found;
        if hosts.is_empty() {
            complaints.push(match (discovery.hosts.len(), written) {
                (0, 0) => {
                    "no host is known, so no table is pushed; proxies keep what they have".into()
                }
                (0, _) => "only the hosts of the configuration are known".into(),
                _ => discovery.stays().unwrap_or_else(|| {
                    format!("what was found last stays: {} hosts", discovery.hosts.len())
                }),
            });
            return (false, complaints);
        }
        if hosts.len() + written > MAX_HOSTS {
            complaints.push(format!(
                "{} hosts and the {written} of the configuration are more than {MAX_HOSTS}; the last are left out",
                hosts.len()
            ));
            hosts.truncate(MAX_HOSTS - written);
        }
        let changed = discovery.hosts != hosts;
        if changed {
            tell(cluster, &discovery.hosts, &hosts);
        }
        discovery.hosts = hosts;
        discovery.of_question_before = false;
        (changed, complaints)
    }

    /// Takes in the trust domain. What is to be complained of.
    pub fn trust(&mut self, cluster: &str, now: String) -> Vec<String> {
        let Some(discovery) = self.found.get_mut(cluster) else {
            return Vec::new();
        };
        let first = discovery.trust_domain.get_or_insert_with(|| now.clone());
        if *first == now {
            return Vec::new();
        }
        vec![format!(
            "the trust domain was {first:?} and is {now:?}: proxies' names of clusters contain it, so overrides of \
             upstreams and the filter's configuration have to name the new ones; start weir-control again then"
        )]
    }

    /// Clusters whose hosts are those of the question before, and what is to be complained of for that.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (&String, String)> {
        let found = self.found.iter();
        found.filter_map(|(name, discovery)| Some((name, discovery.stays()?)))
    }

    /// How each cluster is asked for that is to be found.
    pub(super) fn registries(&self) -> impl Iterator<Item = (&String, &Registry)> {
        let found = self.found.iter();
        found.map(|(name, discovery)| (name, &discovery.registry))
    }

    /// Whether a cluster is asked for with these settings, not only with the like.
    pub(super) fn is_asked(&self, cluster: &str, registry: &Registry) -> bool {
        let discovery = self.found.get(cluster);
        discovery.is_some_and(|discovery| discovery.registry.is(registry))
    }
}

impl Discovery {
    /// What there is to complain of while the hosts are those of the question before.
    fn stays(&self) -> Option<String> {
        let (kept, registry) = (self.hosts.len(), self.registry.title());
        self.of_question_before.then(|| {
            format!("the hosts are {kept} as the question before found them, until {registry} names some to the new one")
        })
    }
}

/// Hosts of a fleet that are named in one line of the log.
const MOST_NAMED: usize = 20;

fn tell(cluster: &str, old: &[Host], new: &[Host]) {
    let missing = |of: &[Host], from: &[Host]| -> Vec<String> {
        let from: BTreeSet<&str> = from.iter().map(|host| host.address.as_str()).collect();
        let missing = of
            .iter()
            .filter(|host| !from.contains(host.address.as_str()));
        missing
            .take(MOST_NAMED)
            .map(|host| host.address.clone())
            .collect()
    };
    let (added, gone) = (missing(new, old), missing(old, new));
    info!(
        cluster,
        hosts = new.len(),
        ?added,
        ?gone,
        "hosts found have changed"
    );
}

#[cfg(test)]
mod tests;
