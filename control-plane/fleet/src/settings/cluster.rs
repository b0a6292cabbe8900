// SPDX-License-Identifier: Apache-2.0
//! A cluster and its hosts.

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;
use weir_policy::{HostId, KeyHash, Policy, Salt};

use super::{Cache, Dagor, Kept, KvEvents, Prometheus, Registry, Scrape};
use crate::poll::Source;

/// One cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct Cluster {
    /// How hosts are chosen.
    pub policy: Policy,
    /// While some requests are steered and others are not: none is from when those that are fare worse.
    pub withdraws: bool,
    /// How admission levels move.
    pub dagor: Dagor,
    /// What keys are hashed with; absent: they have no salt.
    pub salt: Option<Salt>,
    /// Into how many resources cache contents are split; 0: none are pushed.
    pub cache_shards: u32,
    /// Sorted by address, no address twice. As written; those that a registry names are added by `sources::membership`.
    pub hosts: Vec<Host>,
    /// For how long a list that lost more than half of its hosts has to be read before it counts; zero: any list does
    /// at once.
    pub shrink_after: Duration,
    /// Why the hosts are not those that are written now.
    pub kept: Option<Kept>,
    /// Absent: all hosts are written here.
    pub registry: Option<Registry>,
    /// Absent: hosts' metrics are not read.
    pub scrape: Option<Scrape>,
    /// Absent: hosts are not asked for cache contents.
    pub cache: Option<Cache>,
    /// Instead of `cache`: hosts tell of their blocks. Absent: they are not listened to.
    pub kv_events: Option<KvEvents>,
    /// Absent: no Prometheus server is asked for figures.
    pub prometheus: Option<Prometheus>,
    /// Which keys are assigned to which host; with it cache contents are these.
    pub plan: Option<Plan>,
    /// The same as it is learned. At most one of the two is there.
    pub planner: Option<Planning>,
}

impl Cluster {
    /// Whether cache contents are a plan's.
    pub fn is_planned(&self) -> bool {
        self.plan.is_some() || self.planner.is_some()
    }

    /// Whether anybody is asked for figures of its hosts; else answers carry them, or they have none.
    pub fn has_figures(&self) -> bool {
        self.scrape.is_some() || self.prometheus.is_some()
    }

    /// How hosts are asked for cache contents. Where none are kept nobody is asked: who is asked again begins
    /// with all that there is, and who went on would hear of changes alone.
    pub fn asked_cache(&self) -> Option<&Cache> {
        self.cache.as_ref().filter(|_| self.cache_shards > 0)
    }

    /// How hosts are listened to, where cache contents are kept.
    pub fn heard_events(&self) -> Option<&KvEvents> {
        self.kv_events.as_ref().filter(|_| self.cache_shards > 0)
    }

    /// Who says what hosts hold; none where nobody does.
    pub fn contents_source(&self) -> Option<Source> {
        let asked = self.asked_cache().map(|_| Source::Cache);
        asked.or_else(|| self.heard_events().map(|_| Source::KvEvents))
    }

    /// Whether the source is asked for this cluster.
    pub fn asks(&self, source: Source) -> bool {
        match source {
            Source::Scrape => self.scrape.is_some(),
            Source::Cache | Source::KvEvents => self.contents_source() == Some(source),
            Source::Consul | Source::ConsulRoots => {
                matches!(self.registry, Some(Registry::Consul(_)))
            }
            Source::Dns => matches!(self.registry, Some(Registry::Dns(_))),
            Source::Kubernetes => matches!(self.registry, Some(Registry::Kubernetes(_))),
            Source::Prometheus => self.prometheus.is_some(),
        }
    }
}

/// A caching plan: by host, the keys that are assigned to it.
pub type Plan = BTreeMap<HostId, Vec<KeyHash>>;

/// How a caching plan is learned.
#[derive(Clone, Debug, PartialEq)]
pub struct Planning {
    /// How often it is made anew.
    pub every: Duration,
    /// After so long what a key was asked for counts half.
    pub memory: Duration,
    /// Of the keys, in a minute, so many go to another host or to one more, their own being there still: a share.
    pub moved_per_minute: f64,
}

impl Default for Planning {
    /// Ten seconds, five minutes, a twentieth.
    fn default() -> Self {
        Self {
            every: Duration::from_secs(10),
            memory: Duration::from_secs(300),
            moved_per_minute: 0.05,
        }
    }
}

/// One host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    /// Where requests go; canonical `ip:port`.
    pub address: String,
    /// Where its metrics are read.
    pub metrics_address: String,
    /// Where its cache contents are read.
    pub cache_address: String,
    /// Thousandths of a core; 0 where unknown.
    pub capacity_millicores: u32,
    /// When it goes away; 0 where it does not.
    pub preempt_at_unix_ms: u64,
    /// Where it is, if anybody says so.
    pub zone: Option<String>,
    /// Gets nothing new.
    pub draining: bool,
    /// Present where the host is written, not only found.
    pub written: Option<Written>,
    /// Present where it was found: what discovery knows it as.
    pub instance: Option<Instance>,
}

/// Which fields of a host are written; they count more than what was found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Written {
    pub metrics_address: bool,
    pub cache_address: bool,
    pub capacity_millicores: bool,
    pub preempt_at_unix_ms: bool,
    pub zone: bool,
}

/// What discovery knows a host as.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Instance {
    /// Of Consul the id of the service on its node, of DNS the name that has the host's address.
    pub id: String,
    /// Name of the node; empty where none is known.
    pub node: String,
}
