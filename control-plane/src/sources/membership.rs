// SPDX-License-Identifier: Apache-2.0
//! Which hosts each cluster has.
//!
//! ```text
//!  file ──── as written ──┐
//!                         ├─ Membership ── effective Config (watch) ──> supervise
//!  consul ── as found ────┘                └──────── Update ──────────> state
//! ```
//!
//! One owner, so that a change of either kind sees the other's newest. What was found last stays while
//! discovery fails, names nobody, or is asked the same question in another way (a new token, say).

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};
use tracing::{Instrument, info};
use weir_policy::MAX_HOSTS;

use super::consul::{self, Found, News, Said};
use super::{Abort, PollError, Source};
use crate::config::{Cluster, Config, Consul, Host};
use crate::state::Update;

/// News of discovery that may wait.
const NEWS_WAITING: usize = 64;

/// What is written and what was found.
#[derive(Debug)]
pub struct Membership {
    written: Arc<Config>,
    found: BTreeMap<String, Discovery>,
}

/// What is known of one cluster.
#[derive(Debug)]
struct Discovery {
    settings: Arc<Consul>,
    /// As found last.
    hosts: Vec<Host>,
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

    /// Takes a new configuration. What was found stays where the question is the same.
    pub fn configure(&mut self, written: Arc<Config>) {
        let mut old = std::mem::take(&mut self.found);
        for (name, cluster) in &written.clusters {
            let Some(settings) = &cluster.consul else {
                continue;
            };
            let kept = old
                .remove(name)
                .filter(|old| old.settings.question == settings.question);
            let Some(kept) = kept else {
                let discovery = Discovery {
                    settings: settings.clone(),
                    hosts: Vec::new(),
                    trust_domain: None,
                };
                self.found.insert(name.clone(), discovery);
                continue;
            };
            // The same settings are the same task.
            let settings = match kept.settings == *settings {
                true => kept.settings,
                false => settings.clone(),
            };
            let discovery = Discovery { settings, ..kept };
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
                (kept, _) => format!("the {kept} hosts that were found last stay"),
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

    /// Whether it is what is asked now, not what a task was told before.
    fn is_asked(&self, news: &News) -> bool {
        let discovery = self.found.get(&*news.cluster);
        discovery.is_some_and(|discovery| Arc::ptr_eq(&discovery.settings, &news.settings))
    }
}

/// All hosts, sorted by address. What is written of a host counts more than what was found.
fn union(written: &[Host], found: &[Host]) -> Vec<Host> {
    let mut all: BTreeMap<&str, Host> = found
        .iter()
        .map(|host| (host.address.as_str(), host.clone()))
        .collect();
    for host in written {
        let merged = match all.remove(host.address.as_str()) {
            Some(found) => merged(host, found),
            None => host.clone(),
        };
        all.insert(&host.address, merged);
    }
    all.into_values().collect()
}

fn merged(host: &Host, found: Host) -> Host {
    let is = host.written.unwrap_or_default();
    let metrics_address = if is.metrics_address { host } else { &found }
        .metrics_address
        .clone();
    Host {
        address: host.address.clone(),
        cache_address: match (is.cache_address, is.metrics_address) {
            (true, _) => host.cache_address.clone(),
            (false, true) => metrics_address.clone(),
            (false, false) => found.cache_address,
        },
        metrics_address,
        capacity_millicores: if is.capacity_millicores {
            host.capacity_millicores
        } else {
            found.capacity_millicores
        },
        preempt_at_unix_ms: if is.preempt_at_unix_ms {
            host.preempt_at_unix_ms
        } else {
            found.preempt_at_unix_ms
        },
        draining: host.draining,
        written: host.written,
        instance: found.instance,
    }
}

/// Hosts of a fleet that are named in one line of the log.
const MOST_NAMED: usize = 20;

fn tell(cluster: &str, old: &[Host], new: &[Host]) {
    let missing = |of: &[Host], from: &[Host]| -> Vec<String> {
        let from: std::collections::BTreeSet<&str> =
            from.iter().map(|host| host.address.as_str()).collect();
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

/// A task that asks for one cluster.
#[derive(Debug)]
struct Asking {
    settings: Arc<Consul>,
    _task: Abort,
}

/// Owns the membership until nobody writes configurations or wants to know.
pub async fn run(
    mut written: watch::Receiver<Arc<Config>>,
    configs: watch::Sender<Arc<Config>>,
    updates: mpsc::Sender<Update>,
) {
    let (sender, mut news) = mpsc::channel(NEWS_WAITING);
    let mut membership = Membership::new(written.borrow_and_update().clone());
    let mut asking = BTreeMap::new();
    ask(&membership, &mut asking, &sender);
    loop {
        let update = tokio::select! {
            changed = written.changed() => {
                if changed.is_err() {
                    return;
                }
                membership.configure(written.borrow_and_update().clone());
                ask(&membership, &mut asking, &sender);
                Update::Configured(publish(&membership, &configs))
            }
            Some(news) = news.recv() => {
                if !membership.is_asked(&news) {
                    continue;
                }
                let source = news.said.source();
                let (changed, result) = take(&mut membership, &news.cluster, news.said);
                if changed {
                    let update = Update::Discovered(publish(&membership, &configs));
                    if updates.send(update).await.is_err() {
                        return;
                    }
                }
                Update::Asked { cluster: news.cluster, source, result }
            }
        };
        if updates.send(update).await.is_err() {
            return;
        }
    }
}

fn take(
    membership: &mut Membership,
    cluster: &str,
    said: Said,
) -> (bool, Result<Vec<String>, PollError>) {
    match said {
        Said::Hosts(Ok(found)) => {
            let (changed, complaints) = membership.find(cluster, found);
            (changed, Ok(complaints))
        }
        Said::TrustDomain(Ok(now)) => (false, Ok(membership.trust(cluster, now))),
        Said::Hosts(Err(error)) | Said::TrustDomain(Err(error)) => (false, Err(error)),
    }
}

fn publish(membership: &Membership, configs: &watch::Sender<Arc<Config>>) -> Arc<Config> {
    let config = membership.effective();
    configs.send_replace(config.clone());
    config
}

/// Keeps one task a cluster that is to be found.
fn ask(membership: &Membership, asking: &mut BTreeMap<String, Asking>, news: &mpsc::Sender<News>) {
    let settings = |name: &String| Some(&membership.found.get(name)?.settings);
    asking.retain(|name, task| settings(name).is_some_and(|now| Arc::ptr_eq(now, &task.settings)));
    for (name, discovery) in &membership.found {
        asking.entry(name.clone()).or_insert_with(|| {
            let span =
                tracing::info_span!("discovery", source = Source::Consul.as_str(), cluster = %name);
            let settings = discovery.settings.clone();
            let task = consul::run(name.as_str().into(), settings.clone(), news.clone());
            Asking {
                settings,
                _task: Abort(tokio::spawn(task.instrument(span))),
            }
        });
    }
}

#[cfg(test)]
mod tests;
